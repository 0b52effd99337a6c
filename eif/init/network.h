// The loopback interface.
#ifndef STRONGROOM_INIT_NETWORK_H
#define STRONGROOM_INIT_NETWORK_H

void raise_loopback(void);

#endif
