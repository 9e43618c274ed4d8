/** Makes every loop of a thread end when the thread is terminated or its heap is full. */
import { setFlagsFromString } from 'node:v8'

/**
 * Call before a thread starts that runs code of operators or bodies of clients. V8 of Node 26 does not see a request to
 * stop in a loop that allocates, once it has replaced the running loop by optimised code (on-stack replacement). The
 * flag turns that replacement off for the process; functions are still optimised between their calls.
 */
export function makeLoopsInterruptible(): void {
  setFlagsFromString('--no-use-osr')
}
