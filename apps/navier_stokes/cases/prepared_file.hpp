#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flow {

// The values and arrays of a prepared case, by name. All throw invalid_input.
class PreparedFile {
 public:
  explicit PreparedFile(const std::filesystem::path& file);

  const std::string& text(const std::string& name) const;
  double number(const std::string& name) const;
  // Finite. `each`: the count is a multiple of it.
  const std::vector<double>& numbers(const std::string& name, std::size_t each = 1) const;
  // From `least` to `most`.
  const std::vector<std::int64_t>& integers(const std::string& name, std::int64_t least, std::int64_t most,
                                            std::size_t each = 1) const;
  bool has(const std::string& name) const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  void read_line(const std::string& line, std::string_view data, std::size_t& at);

  std::string file_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::vector<double>> numbers_;
  std::map<std::string, std::vector<std::int64_t>> integers_;
};

}  // namespace flow
