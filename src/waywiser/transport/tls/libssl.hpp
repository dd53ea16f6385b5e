#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// OpenSSL's own opaque types.
struct bio_st;
struct ssl_cipher_st;
struct ssl_ctx_st;
struct ssl_method_st;
struct ssl_session_st;
struct ssl_st;

namespace waywiser {

using SslPskUseSession = int (*)(ssl_st*, const void* digest, const unsigned char** id, std::size_t* id_length,
                                 ssl_session_st** session);
using SslPskFindSession = int (*)(ssl_st*, const unsigned char* id, std::size_t id_length, ssl_session_st** session);

// The functions of OpenSSL's libssl, 1.1.1 or later, that are used, under their own names without "SSL_".
struct SslFunctions {
  const ssl_method_st* (*tls_method)();
  ssl_ctx_st* (*ctx_new)(const ssl_method_st*);
  void (*ctx_free)(ssl_ctx_st*);
  long (*ctx_ctrl)(ssl_ctx_st*, int, long, void*);
  std::uint64_t (*ctx_set_options)(ssl_ctx_st*, std::uint64_t);
  int (*ctx_set_ciphersuites)(ssl_ctx_st*, const char*);
  int (*ctx_set_num_tickets)(ssl_ctx_st*, std::size_t);
  void (*ctx_set_psk_use_session_callback)(ssl_ctx_st*, SslPskUseSession);
  void (*ctx_set_psk_find_session_callback)(ssl_ctx_st*, SslPskFindSession);
  int (*ctx_set_ex_data)(ssl_ctx_st*, int, void*);
  void* (*ctx_get_ex_data)(const ssl_ctx_st*, int);
  ssl_ctx_st* (*get_ssl_ctx)(const ssl_st*);
  ssl_st* (*create)(ssl_ctx_st*);
  void (*free)(ssl_st*);
  int (*set_fd)(ssl_st*, int);
  void (*set_connect_state)(ssl_st*);
  void (*set_accept_state)(ssl_st*);
  int (*do_handshake)(ssl_st*);
  int (*read)(ssl_st*, void*, int);
  int (*write)(ssl_st*, const void*, int);
  int (*shutdown)(ssl_st*);
  int (*get_error)(const ssl_st*, int);
  bio_st* (*get_wbio)(const ssl_st*);
  long (*bio_ctrl)(bio_st*, int, long, void*);
  ssl_session_st* (*session_new)();
  void (*session_free)(ssl_session_st*);
  int (*session_set1_master_key)(ssl_session_st*, const unsigned char*, std::size_t);
  int (*session_set_cipher)(ssl_session_st*, const ssl_cipher_st*);
  int (*session_set_protocol_version)(ssl_session_st*, int);
  const ssl_cipher_st* (*cipher_find)(ssl_st*, const unsigned char*);
  unsigned long (*err_get_error)();
  void (*err_error_string_n)(unsigned long, char*, std::size_t);
  void (*err_clear_error)();
};

// Opened on first use: WAYWISER_LIBSSL, else the one beside WAYWISER_LIBCRYPTO, else the one that the loader finds.
class SslLibrary {
 public:
  SslLibrary();
  bool usable() const noexcept { return why_not_.empty(); }
  const std::string& why_not() const noexcept { return why_not_; }
  // The file, for people; empty without one.
  const std::string& path() const noexcept { return path_; }
  // Throws unavailable.
  const SslFunctions& functions() const;

 private:
  SslFunctions functions_{};
  std::string why_not_, path_;
};
const SslLibrary& ssl_library();

}  // namespace waywiser
