/**
 * The heaps of a start. V8 doubles the young generation of a thread up to 16 MiB per half while much is allocated, as
 * where thousands of APIs are read, and does not give it back to a thread that then has nothing to do.
 */
import { setFlagsFromString } from 'node:v8'

/** Young generations stay as they are, in every thread, until they may grow again. */
export function keepYoungHeapsSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

/** As V8 has it: traffic needs room in proportion to what it allocates. */
export function letYoungHeapsGrow(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
}
