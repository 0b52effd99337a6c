// The file systems, and the console.
#ifndef STRONGROOM_INIT_MOUNTS_H
#define STRONGROOM_INIT_MOUNTS_H

void mount_file_systems(void);

/** Standard input, output and error, when the kernel found no console to open. */
void open_console(void);

#endif
