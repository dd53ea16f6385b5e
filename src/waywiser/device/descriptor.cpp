#include "waywiser/device/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "waywiser/base/error.hpp"

namespace waywiser {

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Descriptor Descriptor::duplicate() const {
  const int copy = ::fcntl(number_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw Error(ErrorKind::io, "cannot duplicate a file descriptor: " + last_system_error());
  return Descriptor(copy);
}

}  // namespace waywiser
