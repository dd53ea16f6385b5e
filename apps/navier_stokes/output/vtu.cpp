#include "apps/navier_stokes/output/vtu.hpp"

#include <cstdio>
#include <regex>
#include <span>

#include "apps/navier_stokes/output/durable_file.hpp"

namespace flow {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string padded(std::int64_t step) {
  char text[24];
  std::snprintf(text, sizeof text, "%08lld", static_cast<long long>(step));
  return text;
}

constexpr std::string_view head =
    R"(<?xml version="1.0"?>
<VTKFile type="%" version="1.0" byte_order="LittleEndian" header_type="UInt64">
)";

std::string file_head(const std::string& type) {
  std::string text(head);
  return text.replace(text.find('%'), 1, type);
}

// Arrays as they stand in a file of VTK: described first, their bytes at its end.
class Appended {
 public:
  template <typename T>
  std::string described(const std::string& name, const std::string& type, int components, std::span<const T> values) {
    std::string line = "<DataArray type=\"" + type + "\" Name=\"" + name + "\" NumberOfComponents=\"" +
                       std::to_string(components) + "\" format=\"appended\" offset=\"" + std::to_string(bytes_.size()) +
                       "\"/>\n";
    const std::uint64_t length = values.size_bytes();
    bytes_.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return line;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

const char* const cell_arrays = R"(<PDataArray type="Int32" Name="rank" NumberOfComponents="1"/>
<PDataArray type="Int64" Name="cell" NumberOfComponents="1"/>
)";

std::string piece_text(const LocalMesh& mesh, int rank, const std::vector<CellField>& fields) {
  const CellList& list = mesh.owned_cells;
  std::vector<double> points;
  for (const Vector3& each : list.points) points.insert(points.end(), {each.x, each.y, each.z});
  const std::vector<std::int64_t> vertices(list.vertices.begin(), list.vertices.end());
  std::vector<std::uint8_t> shapes;
  for (const CellShape shape : list.shapes) shapes.push_back(static_cast<std::uint8_t>(shape));
  const std::vector<std::int32_t> ranks(shapes.size(), rank);

  Appended data;
  std::string text = file_head("UnstructuredGrid");
  text += "<UnstructuredGrid>\n<Piece NumberOfPoints=\"" + std::to_string(list.points.size()) + "\" NumberOfCells=\"" +
          std::to_string(shapes.size()) + "\">\n";
  text +=
      "<Points>\n" + data.described("points", "Float64", 3, std::span<const double>(points)) + "</Points>\n<Cells>\n";
  text += data.described("connectivity", "Int64", 1, std::span<const std::int64_t>(vertices));
  text += data.described("offsets", "Int64", 1, std::span(list.first).subspan(1));
  text += data.described("types", "UInt8", 1, std::span<const std::uint8_t>(shapes)) + "</Cells>\n<CellData>\n";
  for (const CellField& each : fields)
    text += data.described(each.name, "Float64", each.components, std::span<const double>(each.values));
  text += data.described("rank", "Int32", 1, std::span<const std::int32_t>(ranks));
  text += data.described("cell", "Int64", 1, std::span(mesh.global).first(shapes.size()));
  text += "</CellData>\n</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_";
  return text + data.bytes() + "\n</AppendedData>\n</VTKFile>\n";
}

}  // namespace

VtuSeries::VtuSeries(std::filesystem::path folder, int rank, int ranks, const LocalMesh& mesh, bool continued,
                     double time)
    : folder_(std::move(folder)), rank_(rank), ranks_(ranks), mesh_(mesh) {
  if (rank != 0 || !continued || !std::filesystem::exists(folder_ / "flow.pvd")) return;
  const std::string text = read_file(folder_ / "flow.pvd");
  const std::regex frame(R"re(<DataSet timestep="([^"]+)"[^>]*/>)re");
  for (std::sregex_iterator found(text.begin(), text.end(), frame), end; found != end; ++found)
    if (std::strtod((*found)[1].str().c_str(), nullptr) <= time) frames_.push_back(found->str());
}

std::string VtuSeries::piece(std::int64_t step, int rank) const {
  return "flow_" + padded(step) + "_" + std::to_string(rank) + ".vtu";
}

void VtuSeries::add(std::int64_t step, double time, const std::vector<CellField>& fields) {
  write_durably(folder_ / piece(step, rank_), piece_text(mesh_, rank_, fields));
  if (rank_ != 0) return;
  std::string list = file_head("PUnstructuredGrid");
  list += "<PUnstructuredGrid GhostLevel=\"0\">\n<PPoints>\n<PDataArray type=\"Float64\" NumberOfComponents=\"3\"/>\n";
  list += "</PPoints>\n<PCellData>\n";
  for (const CellField& each : fields)
    list += "<PDataArray type=\"Float64\" Name=\"" + each.name + "\" NumberOfComponents=\"" +
            std::to_string(each.components) + "\"/>\n";
  list += std::string(cell_arrays) + "</PCellData>\n";
  for (int each = 0; each < ranks_; ++each) list += "<Piece Source=\"" + piece(step, each) + "\"/>\n";
  const std::string name = "flow_" + padded(step) + ".pvtu";
  write_durably(folder_ / name, list + "</PUnstructuredGrid>\n</VTKFile>\n");

  const std::string frame = "<DataSet timestep=\"" + number(time) + "\" file=\"" + name + "\"/>";
  if (frames_.empty() || frames_.back() != frame) frames_.push_back(frame);
  std::string series = file_head("Collection") + "<Collection>\n";
  for (const std::string& each : frames_) series += each + "\n";
  write_durably(folder_ / "flow.pvd", series + "</Collection>\n</VTKFile>\n");
}

}  // namespace flow
