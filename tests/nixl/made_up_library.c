/* Stands for libnixl_common.so: the words of its log, with its version as the constant behind them. */
const char nixl_words[] = "NIXL version: \0" VERSION "\0 (git: ";
