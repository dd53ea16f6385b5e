#include "apps/navier_stokes/output/durable_file.hpp"

#include <waywiser/storage/file.hpp>

namespace flow {

using waywiser::File;
using waywiser::FilePlan;

void write_durably(const std::filesystem::path& file, std::string_view text) {
  File out = File::replace(file, {.plan = FilePlan::usual()});
  out.write(0, {reinterpret_cast<const std::byte*>(text.data()), text.size(), waywiser::host(0)});
  out.close();
}

std::string read_file(const std::filesystem::path& file) {
  File in = File::open(file, {.plan = FilePlan::usual()});
  std::string text(in.size(), '\0');
  in.read(0, {reinterpret_cast<std::byte*>(text.data()), text.size(), waywiser::host(0)});
  return text;
}

}  // namespace flow
