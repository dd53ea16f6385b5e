#pragma once

#include <memory>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/measure/campaign.hpp"
#include "waywiser/measure/two_process_meter.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

// The platform of a back end: auto, cuda, host, or virtual_gpu with the GPUs and peer access of the topology.
// Throws unavailable.
std::unique_ptr<Platform> open_platform(const Topology& topology, const std::string& backend);

// The classes of pairs that `platform` can serve, each for one process and for two, with the paths that may serve them.
std::vector<Subject> subjects(const Topology& topology, const Platform& platform, const CampaignOptions& options);

// Times paths of this machine, within one process and between two; with `connect`, also those to the other machine.
std::unique_ptr<Meter> machine_meter(Platform& platform, const Topology& topology, std::vector<PairClass> classes,
                                     const std::string& peer_program, const TwoProcessMeter::Connect& connect = {});

// The whole verb: opens the platform, keeps the points of `previous` if it belongs to this machine, measures the rest.
// With `connect`, also the paths to the machine at the other end.
Profile measure(const Topology& topology, const CampaignOptions& options, const Profile* previous,
                const ProgressCallback& progress, const TwoProcessMeter::Connect& connect = {});

}  // namespace waywiser
