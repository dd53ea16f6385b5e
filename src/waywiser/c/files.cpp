#include "waywiser/c/handles.hpp"
#include "waywiser/storage/file.hpp"

using namespace waywiser;

struct ww_file {
  File file;
};

namespace {

using OpenFunction = File (*)(const std::filesystem::path&, const FileOptions&);

int opened(OpenFunction open, const char* path, const char* way, ww_file** file) noexcept {
  return guarded([&] {
    given(path, "the path");
    given(file, "the place for the file");
    *file = new ww_file{open(path, {FilePlan::usual(), way == nullptr ? "" : way})};
  });
}

}  // namespace

int ww_file_open(const char* path, const char* way, ww_file** file) { return opened(File::open, path, way, file); }

int ww_file_replace(const char* path, const char* way, ww_file** file) {
  return opened(File::replace, path, way, file);
}

int ww_file_size(const ww_file* file, uint64_t* bytes) {
  return guarded([&] { given(bytes, "the place for the size") = given(file, "the file").file.size(); });
}

int ww_file_read(ww_file* file, uint64_t offset, void* data, size_t bytes) {
  return guarded([&] {
    File& from = given(file, "the file").file;
    if (bytes != 0 && data == nullptr) throw Error(ErrorKind::invalid_input, "the data are NULL");
    from.read(offset, {static_cast<std::byte*>(data), bytes, host(0)});
  });
}

int ww_file_write(ww_file* file, uint64_t offset, const void* data, size_t bytes) {
  return guarded([&] {
    File& to = given(file, "the file").file;
    if (bytes != 0 && data == nullptr) throw Error(ErrorKind::invalid_input, "the data are NULL");
    to.write(offset, {static_cast<const std::byte*>(data), bytes, host(0)});
  });
}

int ww_file_close(ww_file* file) {
  return guarded([&] { given(file, "the file").file.close(); });
}

void ww_file_free(ww_file* file) { delete file; }
