#include "waywiser/comm/runtime_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/comm/sha256.hpp"

namespace waywiser {
namespace {

constexpr Bytes largest_file = 4096;

std::filesystem::path chosen_folder() {
  if (const auto named = environment("WAYWISER_RUNTIME_DIR")) return *named;
  if (const auto session = environment("XDG_RUNTIME_DIR"); session && std::filesystem::is_directory(*session))
    return std::filesystem::path(*session) / "waywiser";
  return "/tmp/waywiser-" + std::to_string(::geteuid());
}

// Names of jobs come from launchers, with any characters and length.
std::filesystem::path file_of(const std::string& job) {
  constexpr std::size_t bytes = 12;
  const Digest digest = sha256(std::as_bytes(std::span(job)));
  return runtime_folder() / ("job-" + hexadecimal(std::span(digest).first(bytes)));
}

}  // namespace

std::filesystem::path runtime_folder() {
  const std::filesystem::path folder = chosen_folder();
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw Error(ErrorKind::io, folder.string() + ": " + last_system_error());
  struct stat facts{};
  if (::lstat(folder.c_str(), &facts) != 0) throw Error(ErrorKind::io, folder.string() + ": " + last_system_error());
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw Error(ErrorKind::io, folder.string() + " must be a folder of yours that nobody else can enter (chmod 700)");
  return folder;
}

MeetingFile::MeetingFile(const std::string& job, const Meeting& meeting) : file_(file_of(job)) {
  write_text(file_, std::to_string(meeting.port) + " " + meeting.secret + "\n");
}

MeetingFile::~MeetingFile() { ::unlink(file_.c_str()); }

std::optional<Meeting> MeetingFile::read(const std::string& job) {
  const std::filesystem::path file = file_of(job);
  const auto is_there = [&] { return ::access(file.c_str(), F_OK) == 0; };
  if (!is_there()) return {};
  std::istringstream text;
  try {
    text.str(read_text(file, largest_file));
  } catch (const Error&) {
    if (is_there()) throw;
    return {};  // rank 0 has just taken it away
  }
  Meeting meeting;
  if (!(text >> meeting.port >> meeting.secret))
    throw Error(ErrorKind::invalid_input, file.string() + " is not the meeting file of a job");
  return meeting;
}

}  // namespace waywiser
