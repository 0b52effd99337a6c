// What nitro-cli waits for.
#ifndef STRONGROOM_INIT_HEARTBEAT_H
#define STRONGROOM_INIT_HEARTBEAT_H

void send_heartbeat(unsigned int cid);

#endif
