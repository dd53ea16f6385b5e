#include "waywiser/transport/tls/tls_writer.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr std::size_t one_record = 16 << 10;

}  // namespace

bool TlsWriter::write(TlsConnection& line, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!begun()) {
    record_.assign(head.begin(), head.end());
    const auto first = body.first(std::min(body.size(), one_record - head.size()));
    record_.insert(record_.end(), first.begin(), first.end());
  }
  while (sent_ < head.size() + body.size()) {
    const std::size_t taken = line.write(sent_ < record_.size() ? std::span<const std::byte>(record_).subspan(sent_)
                                                                : body.subspan(sent_ - head.size()));
    if (taken == 0) return false;
    sent_ += taken;
  }
  forget();
  return true;
}

void TlsWriter::forget() noexcept {
  record_.clear();
  sent_ = 0;
}

}  // namespace waywiser
