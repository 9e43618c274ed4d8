/** Loops that V8 would not stop by itself. This file has a process of its own, which such a loop would keep alive. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { makeLoopsInterruptible } from '../../src/runtime/loop-interrupts.ts'

const LOOPS = [
  'for (;;) new Array(1000).fill(1)',
  'const all = []; for (;;) all.push(new Array(1000).fill(1))',
  'let text = ""; for (;;) text += "x".repeat(1000)',
]

for (const loop of LOOPS) {
  test(`a thread in ${loop} ends when it is terminated or out of memory`, async () => {
    makeLoopsInterruptible()
    const worker = new Worker(loop, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 32 } })
    const ended = new Promise(resolve => worker.once('exit', resolve))
    worker.on('error', error => assert.equal((error as NodeJS.ErrnoException).code, 'ERR_WORKER_OUT_OF_MEMORY'))
    // The loop is optimised by then.
    await Promise.race([ended, wait(1500)])
    await worker.terminate()
    await ended
  })
}
