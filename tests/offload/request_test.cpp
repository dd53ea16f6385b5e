#include "waywiser/offload/request.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/offload/memory_channel.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/offload/array_head_wire.hpp"

namespace waywiser {
namespace {

class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string text(std::size_t most) {
    std::string text(below(most + 1), ' ');
    for (char& c : text) c = static_cast<char>(below(256));
    return text;
  }
  ArrayHead head() {
    ArrayHead head;
    head.of_bools = below(4) == 0;
    head.type = head.of_bools ? DataType::uint8 : static_cast<DataType>(below(data_types));
    for (auto dimensions = below(5); dimensions > 0; --dimensions) head.shape.push_back(below(1000));
    return head;
  }
  // Of any kind.
  RemoteRequest request() {
    const std::vector<RemoteRequest> all{
        requests::Synchronize{},
        requests::End{},
        requests::Zeros{{random_(), head()}},
        requests::NewArray{{random_(), head()}},
        requests::Put{part()},
        requests::Get{{random_()}},
        requests::Free{{random_()}},
        requests::Run{random_(), text(longest_function_name), numbers(), named_numbers()},
        requests::LoadCode{random_(), below(longest_code + 1)},
        requests::LaunchKernel{random_(), text(longest_function_name), shape(), arguments()},
        requests::Give{random_(), secret(), below(2) == 0},
        requests::Take{random_(), secret(), text(longest_address), below(2) == 0},
        requests::UseRoad{data_roads[below(data_roads.size())]},
        requests::OpenPlain{secret()},
        requests::UseStream{{random_()}},
        requests::Record{{random_()}},
        requests::Wait{{random_()}},
        requests::Await{{random_()}},
        requests::Since{random_(), random_()},
        requests::Pin{random_(), below(largest_remote_array + 1), random_(), secret()},
        requests::ArrayFrom{{random_(), head(), place()}},
        requests::PutFrom{{part(), place()}},
        requests::BeginPut{{part(), place()}},
        requests::GetInto{{random_(), head(), place()}},
        requests::CopyBytes{part(), random_(), random_()},
        requests::Fill{part(), random_(), random_()},
        requests::GetPart{{part(), place()}},
        requests::StartKernel{random_(), shape(), text(most_parameter_bytes)},
        requests::Ask{text(longest_function_name), random_(), numbers(), below(longest_kernel_name + 1)}};
    EXPECT_EQ(all.size(), std::variant_size_v<RemoteRequest>);
    return all[below(all.size())];
  }

 private:
  std::string secret() {
    std::string digits(digits_of_secret, ' ');
    for (char& digit : digits) digit = "0123456789abcdef"[below(16)];
    return digits;
  }
  requests::PartOfArray part() { return {random_(), random_(), below(largest_remote_array + 1)}; }
  requests::PinnedPlace place() { return {random_(), random_()}; }
  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> numbers(below(9));
    for (std::uint64_t& number : numbers) number = random_();
    return numbers;
  }
  requests::Numbers named_numbers() {
    requests::Numbers numbers(below(4));
    for (auto& number : numbers) number = {text(longest_number_name), static_cast<double>(below(1000)) / 7};
    return numbers;
  }
  std::vector<KernelArgument> arguments() {
    std::vector<KernelArgument> arguments(below(9));
    for (KernelArgument& argument : arguments) argument = {static_cast<KernelArgument::Kind>(below(5)), random_()};
    return arguments;
  }
  LaunchShape shape() {
    const auto length = [this] { return static_cast<std::uint32_t>(random_()); };
    return {{length(), length(), length()}, {length(), length(), length()}, length()};
  }

  std::mt19937_64 random_;
};

template <typename Request>
void expect_bounds(const Request& asked) {
  if constexpr (requires { asked.head; }) {
    EXPECT_LE(asked.head.bytes(), largest_remote_array);
  }
  if constexpr (requires { asked.part; }) {
    EXPECT_LE(asked.part.bytes, largest_remote_array);
  }
  if constexpr (requires { asked.bytes; }) {
    constexpr bool is_code = std::is_same_v<Request, requests::LoadCode>;
    EXPECT_LE(asked.bytes, is_code ? longest_code : largest_remote_array);
  }
  if constexpr (requires { asked.function; }) {
    EXPECT_LE(asked.function.size(), longest_function_name);
  }
  if constexpr (requires { asked.name_bytes; }) {
    EXPECT_LE(asked.name_bytes, longest_kernel_name);
  }
}

TEST(RemoteRequest, AFrameIsReadAsItWasWritten) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomRequests random(seed);
    std::vector<RemoteRequest> requests(random.below(4));
    for (RemoteRequest& request : requests) request = random.request();
    const std::vector<std::byte> frame = frame_with(requests);
    RequestReader reader(frame);
    for (const RemoteRequest& request : requests) {
      const auto read = reader.next();
      ASSERT_TRUE(read) << seed;
      EXPECT_EQ(read->index(), request.index());
      EXPECT_EQ(bytes_of_request(*read), bytes_of_request(request)) << seed;
    }
    EXPECT_FALSE(reader.next());
  }
}

// A byte that is different, or an end that comes early, is refused or gives other requests that keep all bounds.
TEST(RemoteRequest, AChangedFrameIsReadWithinItsBoundsOrRefused) {
  int refused = 0, read = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomRequests random(seed);
    std::vector<std::byte> frame = frame_with({random.request(), random.request()});
    frame[random.below(300)] = static_cast<std::byte>(random.below(256));
    if (random.below(4) == 0) frame.resize(random.below(100));
    try {
      RequestReader reader(frame);
      while (const auto request = reader.next()) {
        ++read;
        std::visit([](const auto& asked) { expect_bounds(asked); }, *request);
      }
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
      EXPECT_EQ(std::string(error.what()).find("a request: "), 0u) << error.what();
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(read, 100);
}

TEST(RemoteRequest, ShapesThatNoMemoryHoldsAreRefused) {
  for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{std::uint64_t{1} << 46},
                                                  {std::uint64_t{1} << 40, 0, std::uint64_t{1} << 40},
                                                  std::vector<std::uint64_t>(33, 1)}) {
    const ArrayHead head{DataType::float64, false, shape};
    const std::vector<std::byte> frame = frame_with({requests::Zeros{{1, head}}});
    RequestReader reader(frame);
    EXPECT_THROW(reader.next(), Error);
    EXPECT_THROW(check(head), Error);
  }
}

TEST(RemoteReply, IsReadAsItWasWritten) {
  RemoteReply reply;
  reply.failure = RemoteFailure{ErrorKind::device, "a line\nand another" + std::string(600, '.') + "\xc3\xa9"};
  reply.used = 5;
  reply.requests = 7;
  reply.since = 0.25;
  reply.times = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}, 13};
  reply.head = ArrayHead{DataType::complex128, false, {3, 0, 5}};
  const RemoteReply read = read_reply(frame_of(reply));
  ASSERT_TRUE(read.failure);
  EXPECT_EQ(read.failure->kind, ErrorKind::device);
  EXPECT_EQ(read.failure->text.substr(0, 20), "a line and another..");
  EXPECT_EQ(read.failure->text.size(), 480u);
  EXPECT_EQ(std::pair(read.used, read.requests), std::pair(reply.used, reply.requests));
  EXPECT_EQ(read.times.device.begin, 8);
  EXPECT_EQ(read.times.output.end, 12);
  EXPECT_EQ(read.times.now, 13);
  EXPECT_EQ(read.since, 0.25);
  EXPECT_EQ(read.head, reply.head);
  reply.details = longest_details;
  EXPECT_EQ(read_reply(frame_of(reply)).details, longest_details);
  reply.details = longest_details + 1;
  EXPECT_THROW(read_reply(frame_of(reply)), Error);
  reply.details = 0;
  reply.failure = RemoteFailure{ErrorKind::io, std::string(479, 'x') + "\xc3\xa9"};
  EXPECT_EQ(read_reply(frame_of(reply)).failure->text, std::string(479, 'x'));  // no half of a character
}

TEST(RemoteReply, ChangedBytesAreRefusedOrRead) {
  const ReplyFrame frame = frame_of({RemoteFailure{}, 1, 2, {}, ArrayHead{DataType::int8, false, {4}}});
  int refused = 0;
  for (std::size_t at = 0; at < 150; ++at)
    for (const int value : {0, 7, 255}) {
      ReplyFrame changed = frame;
      changed[at] = static_cast<std::byte>(value);
      try {
        EXPECT_LE(read_reply(changed).head.value_or(ArrayHead{}).bytes(), largest_remote_array);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
        ++refused;
      }
    }
  EXPECT_GT(refused, 3);
}

}  // namespace
}  // namespace waywiser
