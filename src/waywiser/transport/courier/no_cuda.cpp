#include "waywiser/transport/courier/courier_kernel.hpp"

namespace waywiser {

std::function<void(void*)> cuda_courier_launcher(const CourierTerms&, CourierShape) { return {}; }

}  // namespace waywiser
