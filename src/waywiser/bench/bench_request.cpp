#include "waywiser/bench/bench_request.hpp"

#include <charconv>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
constexpr std::uint64_t most_calls = 10'000'000, most_samples = 100'000, most_messages = 4096;
constexpr std::uint64_t most_nanoseconds = 60'000'000'000;
constexpr std::uint64_t any = ~std::uint64_t{0};

class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view word(const char* what) {
    const std::size_t begin = rest_.find_first_not_of(' ');
    if (begin == std::string_view::npos) refuse(std::string("no ") + what);
    const std::size_t end = std::min(rest_.find(' ', begin), rest_.size());
    const std::string_view found = rest_.substr(begin, end - begin);
    rest_.remove_prefix(end);
    return found;
  }
  bool more() const { return rest_.find_first_not_of(' ') != std::string_view::npos; }
  std::uint64_t number(const char* what, std::uint64_t least, std::uint64_t most) {
    const std::string_view text = word(what);
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || value < least || value > most)
      refuse(std::string(what) + " is " + quoted(text, 40));
    return value;
  }
  std::string memory(const char* what) {
    const std::string_view text = word(what);
    if (text != "host" && text != "gpu" && text != "exposed")
      refuse(std::string(what) + " is none of host, gpu, exposed");
    return std::string(text);
  }
  CallMode mode() {
    const std::string_view text = word("mode");
    if (text == "blocking") return CallMode::blocking;
    if (text == "stream") return CallMode::stream;
    if (text == "graph") return CallMode::graph;
    if (text == "kernel") return CallMode::kernel;
    refuse("mode is none of blocking, stream, graph, kernel");
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) {
    throw Error(ErrorKind::invalid_input, "benchmark request: " + why);
  }
  std::string_view rest_;
};

}  // namespace

BenchRequest parse_bench_request(std::string_view line) {
  Words words(line);
  BenchRequest request;
  request.operation = words.word("operation");
  request.input = words.memory("input");
  request.output = words.memory("output");
  request.bytes = words.number("bytes", 0, most_bytes);
  request.window = static_cast<int>(words.number("window", 1, most_messages));
  request.calls = static_cast<int>(words.number("calls", 1, most_calls));
  request.samples = static_cast<int>(words.number("samples", 1, most_samples));
  request.seed = words.number("seed", 0, any);
  request.compute = 1e-9 * static_cast<double>(words.number("compute", 0, most_nanoseconds));
  request.mode = words.mode();
  if (request.mode == CallMode::graph && request.calls > most_calls_in_graph &&
      request.calls % most_calls_in_graph != 0)
    throw Error(ErrorKind::invalid_input, "benchmark request: " + std::to_string(request.calls) +
                                              " calls are no multiple of " + std::to_string(most_calls_in_graph));
  if (words.more()) request.way = words.word("way");
  return request;
}

}  // namespace waywiser
