/** Access log lines to a stream: bounded, counted where they are dropped, and a broken reader breaks nothing else. */
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { LineStream } from '../../src/observe/line-stream.ts'

const MIB = 1024 * 1024

/** A batch of so many bytes that is two lines. */
function batchOf(bytes: number): Uint8Array {
  const batch = Buffer.alloc(bytes, 'x')
  batch[0] = batch[bytes - 1] = 0x0a
  return batch
}

test('beyond 8 MiB that wait for the reader whole batches are dropped and their lines counted', () => {
  let taken = 0
  let goOn = (): void => {}
  const reader = new Writable({
    write(piece: Uint8Array, _, done) {
      taken += piece.length
      goOn = done
    },
  })
  let dropped = 0
  const lines = new LineStream(reader, { dropped: count => (dropped += count), failed: assert.fail })
  for (let batch = 0; batch < 8; batch++) lines.write(batchOf(MIB))
  assert.equal(dropped, 0)
  for (let batch = 0; batch < 3; batch++) lines.write(batchOf(MIB))
  assert.equal(dropped, 6)
  assert.equal(reader.writableLength, 8 * MIB)
  goOn()
  lines.write(batchOf(MIB))
  assert.equal(dropped, 6)
  assert.equal(taken, 2 * MIB)
})

test('a reader that is gone is reported once; everything after is dropped and counted', async () => {
  const reader = new Writable({ write: (_, __, done) => done(new Error('EPIPE')), autoDestroy: false })
  let dropped = 0
  const causes: string[] = []
  const lines = new LineStream(reader, { dropped: count => (dropped += count), failed: it => causes.push(it.message) })
  lines.write(batchOf(10))
  await new Promise(setImmediate)
  lines.write(batchOf(10))
  reader.emit('error', new Error('again'))
  lines.write(batchOf(10))
  assert.deepEqual(causes, ['EPIPE'])
  assert.equal(dropped, 4)
})
