#include <string>

#include "waywiser/base/version.hpp"
#include "waywiser/c/handles.hpp"

namespace waywiser {
namespace {

thread_local std::string last_text;

constexpr const char* error_names[] = {"ok",           "invalid input", "unavailable", "timeout",   "device",
                                       "input/output", "corrupt",       "interrupted", "no memory", "internal"};
static_assert(std::size(error_names) == WW_INTERNAL + 1);

// If there is no memory for the text, the error has none: an error must not cause a second one.
int noted(int code, const char* text) noexcept {
  try {
    last_text = text;
  } catch (const std::bad_alloc&) {
    last_text.clear();
  }
  return code;
}

}  // namespace

int note_error() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return noted(static_cast<int>(error.kind()) + 1, error.what());
  } catch (const std::bad_alloc&) {
    return noted(WW_NO_MEMORY, "no memory");
  } catch (const std::exception& error) {
    return noted(WW_INTERNAL, error.what());
  } catch (...) {
    return noted(WW_INTERNAL, "an unknown exception");
  }
}

static_assert(static_cast<int>(ErrorKind::invalid_input) + 1 == WW_INVALID_INPUT);
static_assert(static_cast<int>(ErrorKind::unavailable) + 1 == WW_UNAVAILABLE);
static_assert(static_cast<int>(ErrorKind::timeout) + 1 == WW_TIMEOUT);
static_assert(static_cast<int>(ErrorKind::device) + 1 == WW_DEVICE);
static_assert(static_cast<int>(ErrorKind::io) + 1 == WW_IO);
static_assert(static_cast<int>(ErrorKind::corrupt) + 1 == WW_CORRUPT);
static_assert(static_cast<int>(ErrorKind::interrupted) + 1 == WW_INTERRUPTED);

}  // namespace waywiser

using namespace waywiser;

const char* ww_error_text(void) { return last_text.c_str(); }

const char* ww_error_name(int error) {
  return error >= 0 && error <= WW_INTERNAL ? error_names[error] : "no error of waywiser";
}

const char* ww_version(void) { return version().data(); }

size_t ww_type_size(ww_type type) {
  return type >= WW_FLOAT64 && type <= WW_FLOAT8_E5M2 ? bytes_of(static_cast<DataType>(type)) : 0;
}
