/** Access log to a stream: bounded memory, counted losses, and a reader that goes away. */
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { AccessLogStream } from '../../src/observe/access-log-stream.ts'

const MIB = 1024 * 1024

/** A batch of two lines. */
function batchOf(bytes: number): Uint8Array {
  const batch = Buffer.alloc(bytes, 'x')
  batch[0] = batch[bytes - 1] = 0x0a
  return batch
}

test('batches beyond 8 MiB of waiting bytes are dropped, and their lines are counted', () => {
  let taken = 0
  let resume = (): void => {}
  const reader = new Writable({
    write(piece: Uint8Array, _, done) {
      taken += piece.length
      resume = done
    },
  })
  let dropped = 0
  const told: string[] = []
  const lines = new AccessLogStream(reader, {
    onDropped: count => (dropped += count),
    onFailed: ({ message }) => told.push(message),
    onRecovered: () => told.push('recovered'),
  })
  for (let batch = 0; batch < 8; batch++) lines.write(batchOf(MIB))
  assert.equal(dropped, 0)
  for (let batch = 0; batch < 3; batch++) lines.write(batchOf(MIB))
  assert.equal(dropped, 6)
  assert.match(told.join(), /^the reader of standard output is too slow: [^,]*, and further lines are dropped$/)
  assert.equal(reader.writableLength, 8 * MIB)
  resume()
  lines.write(batchOf(MIB))
  assert.equal(dropped, 6)
  assert.equal(taken, 2 * MIB)
  assert.equal(told.length, 1)
  for (let batch = 0; batch < 8; batch++) resume()
  assert.equal(told[1], 'recovered')
})

test('a reader that goes away is reported once, and later lines are dropped and counted', async () => {
  const reader = new Writable({ write: (_, __, done) => done(new Error('EPIPE')), autoDestroy: false })
  let dropped = 0
  const causes: string[] = []
  const lines = new AccessLogStream(reader, {
    onDropped: count => (dropped += count),
    onFailed: it => causes.push(it.message),
    onRecovered: assert.fail,
  })
  lines.write(batchOf(10))
  await new Promise(setImmediate)
  lines.write(batchOf(10))
  reader.emit('error', new Error('again'))
  lines.write(batchOf(10))
  assert.deepEqual(causes, ['EPIPE'])
  assert.equal(dropped, 4)
})
