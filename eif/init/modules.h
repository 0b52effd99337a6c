// Kernel modules of the image.
#ifndef STRONGROOM_INIT_MODULES_H
#define STRONGROOM_INIT_MODULES_H

void load_modules(void);

#endif
