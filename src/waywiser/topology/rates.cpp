#include "waywiser/topology/rates.hpp"

#include <array>
#include <cstdio>

namespace waywiser {
namespace {

struct PcieGeneration {
  double transfers;  // per second and lane
  double encoding;   // share of bits that are data
  int payload;       // bytes of a typical packet
  const char* words;
};

// 128-byte packets are what GPUs and root complexes of generations 1 to 4 usually agree on, 256 from 5 on.
constexpr std::array<PcieGeneration, 6> pcie_generations{{
    {2.5e9, 0.8, 128, "2.5 GT/s, 8b/10b"},
    {5e9, 0.8, 128, "5 GT/s, 8b/10b"},
    {8e9, 128.0 / 130, 128, "8 GT/s, 128b/130b"},
    {16e9, 128.0 / 130, 128, "16 GT/s, 128b/130b"},
    {32e9, 128.0 / 130, 256, "32 GT/s, 128b/130b"},
    {64e9, 242.0 / 256, 256, "64 GT/s, 242 of 256 bytes of a flit"},
}};

// Header with 64-bit address 16, sequence number 2, CRC 4, framing 4.
constexpr double packet_overhead = 26;

struct NvlinkGeneration {
  double rate;        // bytes per second, link and direction
  double efficiency;  // achievable of nominal
  const char* words;
};

constexpr double flit_share = 16.0 / 17;

constexpr std::array<NvlinkGeneration, 5> nvlink_generations{{
    {20e9, flit_share, "20 GB/s a link (data sheet); achievable: 16 data flits of 17, not measured"},
    {25e9, 0.967, "25 GB/s a link (data sheet); achievable: 48.34 of 50 GB/s were published for 8 x V100"},
    {25e9, flit_share, "25 GB/s a link (data sheet); achievable: 16 data flits of 17, not measured"},
    {26.562e9, 0.83, "26.562 GB/s a link (NVML); achievable: 0.83 of it was measured on H200"},
    {50e9, 0.83, "50 GB/s a link (data sheet); achievable: 0.83 as measured on NVLink 4"},
}};

std::string pcie_source(const PcieGeneration& generation, int width) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), "%s, %d lanes; achievable: %d-byte packets with %.0f bytes around them",
                generation.words, width, generation.payload, packet_overhead);
  return text.data();
}

}  // namespace

std::optional<Rate> pcie_rate(int generation, int width) {
  if (generation < 1 || generation > static_cast<int>(pcie_generations.size()) || width < 1) return std::nullopt;
  const PcieGeneration& entry = pcie_generations[static_cast<std::size_t>(generation - 1)];
  const double nominal = entry.transfers * entry.encoding * width / 8;
  const double share = entry.payload / (entry.payload + packet_overhead);
  return Rate{nominal, nominal * share, pcie_source(entry, width)};
}

std::optional<Rate> nvlink_rate(int generation, int count) {
  if (generation < 1 || generation > static_cast<int>(nvlink_generations.size()) || count < 1) return std::nullopt;
  const NvlinkGeneration& entry = nvlink_generations[static_cast<std::size_t>(generation - 1)];
  const double nominal = entry.rate * count;
  return Rate{nominal, nominal * entry.efficiency, entry.words};
}

std::optional<Rate> rate_of(const Link& link) {
  if (link.kind == "pcie") return pcie_rate(link.generation, link.width);
  if (link.kind == "nvlink") return nvlink_rate(link.generation, link.count);
  return std::nullopt;
}

void fill_rates(Topology& topology) {
  for (Link& link : topology.links) {
    if (link.nominal && link.achievable) continue;
    const std::optional<Rate> rate = rate_of(link);
    if (!rate || link.nominal || link.achievable) continue;
    link.nominal = rate->nominal;
    link.achievable = rate->achievable;
    if (link.source.empty()) link.source = rate->source;
  }
}

}  // namespace waywiser
