// Reading a short text.
#ifndef STRONGROOM_INIT_TEXT_H
#define STRONGROOM_INIT_TEXT_H

#include <sys/types.h>

/** @returns the bytes read, at most size - 1, with a NUL behind them; -1 and errno when there is no such file */
ssize_t read_text(const char *path, char *text, size_t size);

#endif
