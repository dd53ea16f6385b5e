#include "apps/navier_stokes/cases/prepared_case.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "apps/navier_stokes/cases/prepared_file.hpp"

namespace flow {
namespace {

enum BorderKind : std::int64_t { given, outlet, symmetry };

using Corners = std::array<Index, 4>;

// What is given at each face of the border, by its points, ascending; a face of fewer points repeats the largest.
struct PreparedBorder {
  std::vector<std::pair<Corners, BoundaryCondition>> faces;

  BoundaryCondition at(std::span<const Index> vertices) const {
    Corners corners{};
    std::ranges::copy(vertices, corners.begin());
    std::fill(corners.begin() + static_cast<std::ptrdiff_t>(vertices.size()), corners.end(),
              *std::ranges::max_element(vertices));
    std::ranges::sort(corners);
    const auto found = std::ranges::lower_bound(faces, corners, {}, &std::pair<Corners, BoundaryCondition>::first);
    if (found == faces.end() || found->first != corners)
      throw waywiser::Error(waywiser::ErrorKind::invalid_input, "a face of the mesh's border has no condition");
    return found->second;
  }
};

Vector3 vector_of(const PreparedFile& file, const std::string& name) {
  const std::vector<double>& values = file.numbers(name, 3);
  if (values.size() != 3) file.refuse("its " + name + " is no vector");
  return vector_at(values.data(), 0);
}

CellList prepared_mesh(const PreparedFile& file) {
  CellList mesh;
  mesh.dimensions = file.number("dimensions") == 2 ? 2 : 3;
  const std::vector<double>& points = file.numbers("points", 3);
  const auto count = static_cast<std::int64_t>(points.size() / 3);
  if (count > 2'000'000'000) file.refuse("it has too many points");
  for (std::int64_t i = 0; i < count; ++i) mesh.points.push_back(vector_at(points.data(), i));
  const std::vector<std::int64_t>& vertices = file.integers("vertices", 0, count - 1);
  const std::vector<std::int64_t>& first = file.integers("first", 0, static_cast<std::int64_t>(vertices.size()));
  const std::vector<std::int64_t>& shapes = file.integers("shapes", 5, 14);
  if (first.size() != shapes.size() + 1 || first.back() != static_cast<std::int64_t>(vertices.size()))
    file.refuse("its cells are damaged");
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto shape = static_cast<CellShape>(shapes[i]);
    int most = -1;
    for (const std::vector<int>& face : faces_of(shape)) most = std::max(most, *std::ranges::max_element(face));
    if (most < 0 || first[i + 1] - first[i] != most + 1) file.refuse("its cells are damaged");
    std::array<Index, 8> corners{};
    for (std::int64_t k = first[i]; k < first[i + 1]; ++k)
      corners[at(k - first[i])] = static_cast<Index>(vertices[at(k)]);
    mesh.add(shape, std::span(corners).first(at(first[i + 1] - first[i])));
  }
  if (file.has("same_as"))
    for (const std::int64_t point : file.integers("same_as", 0, count - 1))
      mesh.same_as.push_back(static_cast<Index>(point));
  if (!mesh.same_as.empty() && mesh.same_as.size() != mesh.points.size()) file.refuse("its points are damaged");
  return mesh;
}

PreparedBorder border_of(const PreparedFile& file, std::int64_t points, std::size_t names) {
  const auto& corners = file.integers("border", 0, points - 1, 4);
  const auto& kinds = file.integers("border_kind", given, symmetry);
  const auto& named = file.integers("border_name", 0, static_cast<std::int64_t>(names) - 1);
  const auto& bodies = file.integers("border_body", 0, 1);
  const auto& velocity = file.numbers("border_velocity", 3);
  const auto& has_scalar = file.integers("border_has_scalar", 0, 1);
  const auto& scalar = file.numbers("border_scalar");
  const std::size_t faces = kinds.size();
  if (corners.size() != 4 * faces || named.size() != faces || bodies.size() != faces || velocity.size() != 3 * faces ||
      has_scalar.size() != faces || scalar.size() != faces)
    file.refuse("its border is damaged");
  PreparedBorder border;
  for (std::size_t i = 0; i < faces; ++i) {
    Corners points_of_face{};
    for (std::size_t k = 0; k < 4; ++k) points_of_face[k] = static_cast<Index>(corners[4 * i + k]);
    std::ranges::sort(points_of_face);
    BoundaryCondition condition;
    condition.velocity = vector_at(velocity.data(), static_cast<std::int64_t>(i));
    condition.outlet = kinds[i] == outlet;
    condition.symmetry = kinds[i] == symmetry;
    condition.body = bodies[i] != 0;
    condition.name = static_cast<std::int16_t>(named[i]);
    condition.has_scalar = has_scalar[i] != 0;
    condition.scalar = scalar[i];
    border.faces.emplace_back(points_of_face, condition);
  }
  std::ranges::sort(border.faces, {}, &std::pair<Corners, BoundaryCondition>::first);
  return border;
}

// What only some cases have.
void read_more(const PreparedFile& file, FlowCase& made) {
  if (file.has("parts")) {
    made.parts = static_cast<std::int64_t>(file.number("parts"));
    for (const std::int64_t part : file.integers("part_of", 0, made.parts - 1))
      made.part_of.push_back(static_cast<int>(part));
    if (made.part_of.size() != made.mesh.shapes.size()) file.refuse("its parts are damaged");
  }
  if (file.has("les")) {
    made.eddies.kind = file.text("les") == "wale" ? EddyModel::Kind::wale : EddyModel::Kind::smagorinsky;
    made.eddies.coefficient = file.number("les_coefficient");
  }
  if (!file.has("scalar")) return;
  made.scalar_name = file.text("scalar");
  made.scalar.diffusivity = file.number("scalar_diffusivity_m2_per_s");
  made.scalar.schmidt = file.number("scalar_schmidt");
  made.scalar.start = file.number("scalar_start");
  if (!(made.scalar.diffusivity > 0 && made.scalar.schmidt > 0)) file.refuse("its scalar is damaged");
}

}  // namespace

FlowCase prepared_case(const std::filesystem::path& path) {
  const PreparedFile file(path);
  FlowCase made;
  made.key = file.text("key");
  made.mesh = prepared_mesh(file);
  for (int i = 0; file.has("boundary" + std::to_string(i)); ++i)
    made.names.push_back(file.text("boundary" + std::to_string(i)));
  if (made.names.size() > 30'000) file.refuse("it has too many boundaries");
  const auto points = static_cast<std::int64_t>(made.mesh.points.size());
  const auto border = std::make_shared<const PreparedBorder>(border_of(file, points, made.names.size()));
  made.boundary_at = [border](const BorderFace& face) { return border->at(face.vertices); };
  made.start = [start = vector_of(file, "start")](const Vector3&) { return start; };
  made.viscosity = file.number("viscosity_m2_per_s");
  made.density = file.number("density_kg_per_m3");
  made.speed = file.number("velocity_m_per_s");
  made.length = file.number("length_m");
  made.reynolds = made.speed * made.length / made.viscosity;
  made.force = vector_of(file, "force");
  made.time = file.number("end_s");
  made.memory = file.number("memory_s");
  read_more(file, made);
  if (!(made.viscosity > 0 && made.density > 0 && made.speed > 0 && made.length > 0 && made.time > 0 &&
        made.memory > 0))
    file.refuse("its fluid is damaged");
  return made;
}

}  // namespace flow
