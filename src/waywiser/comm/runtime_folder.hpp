#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/tcp.hpp"

namespace waywiser {

// The folder of this user for sockets and files of running jobs, which nobody else may open: WAYWISER_RUNTIME_DIR, else
// $XDG_RUNTIME_DIR/waywiser, else /tmp/waywiser-UID. Made when it is not there. Throws io when others can enter it.
std::filesystem::path runtime_folder();

// Where ranks of one machine find each other.
struct Meeting {
  std::uint16_t port = 0;  // of rank 0, on the loopback
  std::string secret;
};

// The file of one job in the runtime folder; gone when this object is.
class MeetingFile {
 public:
  // By rank 0. An older file of the same name is replaced.
  MeetingFile(const std::string& job, const Meeting& meeting);
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;
  ~MeetingFile();

  // By the others: nothing while it is not there. Throws invalid_input when it is no such file.
  static std::optional<Meeting> read(const std::string& job);

 private:
  std::filesystem::path file_;
};

}  // namespace waywiser
