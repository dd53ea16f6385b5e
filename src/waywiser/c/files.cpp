#include <vector>

#include "waywiser/c/handles.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/storage/file.hpp"

using namespace waywiser;

struct ww_file {
  File file;
  std::shared_ptr<Platform> gpus;  // whose memory the data may be in
};

namespace {

using OpenFunction = File (*)(const std::filesystem::path&, const FileOptions&);

int opened(OpenFunction open, const char* path, const char* way, ww_file** file) noexcept {
  return guarded([&] {
    given(path, "the path");
    given(file, "the place for the file");
    *file = new ww_file{open(path, {FilePlan::usual(), way == nullptr ? "" : way}), {}};
  });
}

std::vector<FilePart> parts_of(const ww_file& file, const ww_file_part* parts, size_t count) {
  if (count != 0) given(parts, "the parts");
  std::vector<FilePart> all;
  for (size_t i = 0; i < count; ++i) {
    auto* data = static_cast<std::byte*>(parts[i].data);
    if (parts[i].bytes != 0 && data == nullptr) throw Error(ErrorKind::invalid_input, "the data are NULL");
    const Place place = file.gpus ? file.gpus->gpu_of(data).value_or(host(0)) : host(0);
    all.push_back({parts[i].offset, {data, parts[i].bytes, place}});
  }
  return all;
}

}  // namespace

int ww_file_open(const char* path, const char* way, ww_file** file) { return opened(File::open, path, way, file); }

int ww_file_replace(const char* path, const char* way, ww_file** file) {
  return opened(File::replace, path, way, file);
}

int ww_file_size(const ww_file* file, uint64_t* bytes) {
  return guarded([&] { given(bytes, "the place for the size") = given(file, "the file").file.size(); });
}

int ww_file_use_gpus(ww_file* file, ww_group* group) {
  return guarded([&] {
    ww_file& used = given(file, "the file");
    used.gpus = given(group, "the group").group.platform();
    used.file.use_gpus(used.gpus);
  });
}

int ww_file_read_many(ww_file* file, const ww_file_part* parts, size_t count) {
  return guarded([&] {
    ww_file& from = given(file, "the file");
    from.file.read(parts_of(from, parts, count));
  });
}

int ww_file_write_many(ww_file* file, const ww_file_part* parts, size_t count) {
  return guarded([&] {
    ww_file& to = given(file, "the file");
    to.file.write(parts_of(to, parts, count));
  });
}

int ww_file_read(ww_file* file, uint64_t offset, void* data, size_t bytes) {
  const ww_file_part part{offset, data, bytes};
  return ww_file_read_many(file, &part, 1);
}

int ww_file_write(ww_file* file, uint64_t offset, const void* data, size_t bytes) {
  const ww_file_part part{offset, const_cast<void*>(data), bytes};
  return ww_file_write_many(file, &part, 1);
}

int ww_file_close(ww_file* file) {
  return guarded([&] { given(file, "the file").file.close(); });
}

void ww_file_free(ww_file* file) { delete file; }
