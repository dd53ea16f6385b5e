// Modules, what is in them, and the linker, which takes one piece of code.
#include <cstring>
#include <fstream>
#include <iterator>

#include "code_image.hpp"
#include "remote_devices.hpp"

using namespace waywiser;

struct CUlinkState_st {
  std::string code;
};

namespace {

// Where the program wants the text of an error, if it does.
void write_log(unsigned count, const CUjit_option* options, void** values, const char* text) {
  char* buffer = nullptr;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < count && options != nullptr && values != nullptr; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) bytes = reinterpret_cast<std::uintptr_t>(values[i]);
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) values[i] = nullptr;
  }
  if (buffer == nullptr || bytes == 0) return;
  const std::size_t length = std::min(std::strlen(text), bytes - 1);
  std::memcpy(buffer, text, length);
  buffer[length] = '\0';
}

void load(RemoteDevices& devices, CUmodule* module, const std::string& code, unsigned count = 0,
          CUjit_option* options = nullptr, void** values = nullptr) {
  RemoteDevice& device = devices.current();
  given_place(module);
  if (code.empty()) end_with(CUDA_ERROR_INVALID_VALUE);
  try {
    *module = new CUmod_st{&device, device.gpu().load_kernels(code)};
  } catch (const Error& error) {
    write_log(count, options, values, error.what());
    if (error.kind() != ErrorKind::invalid_input) throw;
    tell_driver_error("cuModuleLoadData", error.what());
    end_with(CUDA_ERROR_INVALID_IMAGE);
  }
}

std::string text_of_file(const char* path) {
  std::ifstream file(&given_place(path), std::ios::binary);
  if (!file) end_with(CUDA_ERROR_FILE_NOT_FOUND);
  return {std::istreambuf_iterator<char>(file), {}};
}

CUmod_st& own_module(CUmodule module) {
  if (module == nullptr) end_with(CUDA_ERROR_INVALID_HANDLE);
  return *module;
}

// Something that the code has by this name.
template <typename Find>
auto found_in(Find find) {
  try {
    return find();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid_input) end_with(CUDA_ERROR_NOT_FOUND);
    throw;
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  return forwarded("cuModuleLoadDataEx",
                   [&](RemoteDevices& devices) { load(devices, module, code_at(image), count, options, values); });
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return forwarded("cuModuleLoadData", [&](RemoteDevices& devices) { load(devices, module, code_at(image)); });
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return cuModuleLoadData(module, image); }
CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return forwarded("cuModuleLoad", [&](RemoteDevices& devices) { load(devices, module, text_of_file(path)); });
}

// The server keeps the code: the same code is compiled once.
CUresult cuModuleUnload(CUmodule module) {
  return forwarded("cuModuleUnload", [&](RemoteDevices&) {
    own_module(module);
    delete module;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return forwarded("cuModuleGetFunction", [&](RemoteDevices&) {
    CUmod_st& in = own_module(module);
    given_place(function), given_place(name);
    auto& known = in.functions[name];
    if (!known) {
      RemoteKernel kernel = found_in([&] { return in.device->driver().kernel(in.code, name); });
      known = std::make_unique<CUfunc_st>(CUfunc_st{module, name, std::move(kernel)});
    }
    *function = known.get();
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
  return forwarded("cuModuleGetGlobal", [&](RemoteDevices&) {
    CUmod_st& in = own_module(module);
    given_place(name);
    const auto found = found_in([&] { return in.device->driver().variable(in.code, name); });
    in.device->add(found.address, found.array, found.bytes);
    if (address != nullptr) *address = found.address;
    if (bytes != nullptr) *bytes = found.bytes;
  });
}

CUresult cuLinkCreate_v2(unsigned, CUjit_option*, void**, CUlinkState* state) {
  return forwarded("cuLinkCreate", [&](RemoteDevices&) { given_place(state) = new CUlinkState_st; });
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, std::size_t bytes, const char*, unsigned,
                          CUjit_option*, void**) {
  return forwarded("cuLinkAddData", [&](RemoteDevices&) {
    std::string& code = given_place(state).code;
    if (!code.empty() || (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_FATBINARY)) {
      tell_driver_error("cuLinkAddData", "one piece of PTX, cubin or fatbin is linked, and no more");
      end_with(CUDA_ERROR_NOT_SUPPORTED);
    }
    code.assign(&given_place(static_cast<const char*>(data)), bytes);
  });
}

CUresult cuLinkComplete(CUlinkState state, void** code, std::size_t* bytes) {
  return forwarded("cuLinkComplete", [&](RemoteDevices&) {
    if (given_place(state).code.empty()) end_with(CUDA_ERROR_INVALID_VALUE);
    given_place(code) = state->code.data();
    if (bytes != nullptr) *bytes = state->code.size();
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  return forwarded("cuLinkDestroy", [&](RemoteDevices&) { delete state; });
}
}
#pragma GCC visibility pop
