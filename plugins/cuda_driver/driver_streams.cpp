// Streams and events. Whether something is over cannot be asked without waiting, so that a query waits.
#include "remote_devices.hpp"

using namespace waywiser;

namespace {

bool is_default(CUstream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

CUstream_st& own_stream(CUstream stream) {
  if (is_default(stream)) end_with(CUDA_ERROR_INVALID_HANDLE);
  return *stream;
}

CUevent_st& own_event(CUevent event) {
  if (event == nullptr) end_with(CUDA_ERROR_INVALID_HANDLE);
  return *event;
}

void synchronize(RemoteDevices& devices, CUstream stream) {
  RemoteDevice& device = is_default(stream) ? devices.current() : *stream->device;
  use_stream(device, stream);
  device.gpu().synchronize();
}

void wait_for(CUevent event) {
  CUevent_st& meant = own_event(event);
  if (meant.recorded) meant.device->gpu().await(meant.number);
}

void make_stream(RemoteDevices& devices, CUstream* stream, unsigned flags, int priority) {
  RemoteDevice& device = devices.current();
  given_place(stream) = new CUstream_st{&device, device.gpu().new_stream(), flags, priority};
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return forwarded("cuStreamCreate", [&](RemoteDevices& devices) { make_stream(devices, stream, flags, 0); });
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return forwarded("cuStreamCreateWithPriority",
                   [&](RemoteDevices& devices) { make_stream(devices, stream, flags, priority); });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return forwarded("cuStreamDestroy", [&](RemoteDevices&) {
    const CUstream_st& meant = own_stream(stream);
    meant.device->gpu().free(meant.number);
    delete stream;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return forwarded("cuStreamSynchronize", [&](RemoteDevices& devices) { synchronize(devices, stream); });
}
CUresult cuStreamQuery(CUstream stream) {
  return forwarded("cuStreamQuery", [&](RemoteDevices& devices) { synchronize(devices, stream); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return forwarded("cuStreamWaitEvent", [&](RemoteDevices&) {
    const CUevent_st& meant = own_event(event);
    if (!meant.recorded) return;
    use_stream(*meant.device, stream);
    meant.device->gpu().wait(meant.number);
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return forwarded("cuStreamGetFlags",
                   [&](RemoteDevices&) { given_place(flags) = is_default(stream) ? 0 : stream->flags; });
}
CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return forwarded("cuStreamGetPriority",
                   [&](RemoteDevices&) { given_place(priority) = is_default(stream) ? 0 : stream->priority; });
}
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return forwarded("cuStreamGetId", [&](RemoteDevices&) { given_place(id) = is_default(stream) ? 0 : stream->number; });
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return forwarded("cuStreamGetCtx", [&](RemoteDevices& devices) {
    given_place(context) = is_default(stream) ? devices.current().primary() : stream->device->primary();
  });
}

// When all before it in the stream is over, on the thread that calls: nothing else is under way then.
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  const CUresult waited = forwarded("cuLaunchHostFunc", [&](RemoteDevices& devices) {
    if (function == nullptr) end_with(CUDA_ERROR_INVALID_VALUE);
    synchronize(devices, stream);
  });
  if (waited == CUDA_SUCCESS) function(data);
  return waited;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  return forwarded("cuEventCreate", [&](RemoteDevices& devices) {
    RemoteDevice& device = devices.current();
    given_place(event) = new CUevent_st{&device, device.gpu().new_event()};
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return forwarded("cuEventDestroy", [&](RemoteDevices&) {
    const CUevent_st& meant = own_event(event);
    if (meant.recorded) meant.device->gpu().free(meant.number);
    delete event;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return forwarded("cuEventRecord", [&](RemoteDevices&) {
    CUevent_st& meant = own_event(event);
    use_stream(*meant.device, stream);
    meant.device->gpu().record(meant.number);
    meant.recorded = true;
  });
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) { return cuEventRecord(event, stream); }

CUresult cuEventSynchronize(CUevent event) {
  return forwarded("cuEventSynchronize", [&](RemoteDevices&) { wait_for(event); });
}
CUresult cuEventQuery(CUevent event) {
  return forwarded("cuEventQuery", [&](RemoteDevices&) { wait_for(event); });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return forwarded("cuEventElapsedTime", [&](RemoteDevices&) {
    const CUevent_st &first = own_event(start), &last = own_event(end);
    if (!first.recorded || !last.recorded || first.device != last.device) end_with(CUDA_ERROR_INVALID_HANDLE);
    given_place(milliseconds) = static_cast<float>(first.device->gpu().since(last.number, first.number) * 1e3);
  });
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime(milliseconds, start, end);
}
}
#pragma GCC visibility pop

WAYWISER_PER_THREAD(cuStreamSynchronize, _ptsz)
WAYWISER_PER_THREAD(cuStreamQuery, _ptsz)
WAYWISER_PER_THREAD(cuStreamWaitEvent, _ptsz)
WAYWISER_PER_THREAD(cuStreamGetFlags, _ptsz)
WAYWISER_PER_THREAD(cuStreamGetPriority, _ptsz)
WAYWISER_PER_THREAD(cuStreamGetId, _ptsz)
WAYWISER_PER_THREAD(cuStreamGetCtx, _ptsz)
WAYWISER_PER_THREAD(cuLaunchHostFunc, _ptsz)
WAYWISER_PER_THREAD(cuEventRecord, _ptsz)
WAYWISER_PER_THREAD(cuEventRecordWithFlags, _ptsz)
