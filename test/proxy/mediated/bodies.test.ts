/** Bodies of mediated messages by themselves: files and their failures, and feeds of bodies of unknown length. */
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { BodySpans } from '../../../src/http1/body.ts'
import { HeadPool } from '../../../src/http1/head.ts'
import { arena } from '../../../src/http1/llhttp.ts'
import { BodyCollector } from '../../../src/proxy/mediated/body-collector.ts'
import { BodyFeed, type FeedSink } from '../../../src/proxy/mediated/body-feed.ts'
import { type BodySource, type SourceReader, sourceOfHeld } from '../../../src/proxy/mediated/body-source.ts'
import { BodyStore } from '../../../src/proxy/mediated/body-store.ts'
import type { ConnectionContext } from '../../../src/proxy/exchange/connection-context.ts'
import { ReadMemory } from '../../../src/proxy/exchange/read-buffer.ts'
import { WRITE } from '../../../src/socket/byte-socket.ts'
import { eventually } from '../../harness/peers.ts'

const LIMITS = { bytesMax: 1_000_000, memoryMax: 1000, pieceBytes: 3072 }
const folder = mkdtempSync(join(tmpdir(), 'sluice-bodies-'))
after(() => rmSync(folder, { recursive: true }))

/** What a collector tells its owner. */
class Owner {
  readonly events: string[] = []
  collectorResumed(): void {
    this.events.push('resumed')
  }
  collected(): void {
    this.events.push('collected')
  }
  collectorFailed(cause: string): void {
    this.events.push(`failed ${cause}`)
  }
}

/** Adds a text as one read. */
function add(collector: BodyCollector, text: string): boolean {
  const spans = new BodySpans()
  const chunk = arena.acquire(text.length)!
  arena.bytes.latin1Write(text, chunk.offset)
  spans.offsets[0] = chunk.offset
  spans.offsets[1] = text.length
  const taken = collector.add(spans, 1)
  arena.release(chunk)
  return taken
}

test('a long body is in a file of mode 0600 that grows by whole pieces; its source deletes it', async () => {
  const store = new BodyStore(LIMITS, folder)
  const owner = new Owner()
  const collector = new BodyCollector(owner, store)
  add(collector, 'a'.repeat(900))
  assert.deepEqual(readdirSync(folder), [])
  add(collector, 'b'.repeat(5000))
  assert.ok(collector.isBlocked)
  await eventually('the first piece', () => owner.events.includes('resumed'))
  const path = join(folder, readdirSync(folder)[0]!)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(statSync(path).size, 3072)
  assert.equal(store.heldBytes, 5900 - 3072)
  collector.end()
  await eventually('the whole body', () => owner.events.includes('collected'))
  assert.deepEqual([statSync(path).size, store.heldBytes], [5900, 0])
  const received = await drained(sourceOfHeld(collector.take(), store), -1)
  assert.equal(received, 'a'.repeat(900) + 'b'.repeat(5000))
  await eventually('the end of the file', () => !existsSync(path))
})

test('a body in memory is accounted until its source is closed', () => {
  const store = new BodyStore(LIMITS, folder)
  const collector = new BodyCollector(new Owner(), store)
  for (const piece of ['x', 'y'.repeat(500)]) assert.ok(add(collector, piece))
  collector.end()
  const source = sourceOfHeld(collector.take(), store)
  assert.equal(store.heldBytes, 501)
  source.close()
  source.close()
  assert.equal(store.heldBytes, 0)
})

test('a body beyond the limit is refused', () => {
  const collector = new BodyCollector(new Owner(), new BodyStore({ ...LIMITS, bytesMax: 10 }, folder))
  assert.deepEqual([add(collector, '1234567890'), add(collector, '1')], [true, false])
})

test('a file that cannot be made or is cut short fails with its cause', async () => {
  const store = new BodyStore(LIMITS, join(folder, 'missing'))
  const owner = new Owner()
  add(new BodyCollector(owner, store), 'a'.repeat(2000))
  await eventually('the failure', () => owner.events.includes('failed ENOENT'))
  assert.equal(store.heldBytes, 0)
  const path = join(folder, 'short')
  writeFileSync(path, 'abc')
  chmodSync(path, 0o600)
  await assert.rejects(drained(sourceOfHeld({ kind: 'file', path, length: 5 }, store), -1), /cannot be read/)
})

test('a collector that is given up while it writes leaves no file', async () => {
  const collector = new BodyCollector(new Owner(), new BodyStore(LIMITS, folder))
  add(collector, 'a'.repeat(20_000))
  collector.cancel()
  await eventually('the end of the file', () => readdirSync(folder).length === 0)
})

/** A source whose pieces come later, as those of a worker do. */
class LateSource implements BodySource {
  readonly length = -1
  readonly #pieces: string[]
  #reader: SourceReader | null = null
  #left: number
  isClosed = false
  constructor(pieces: readonly string[]) {
    this.#pieces = [...pieces]
    this.#left = pieces.length
  }
  get isAtEnd(): boolean {
    return this.#left === 0
  }
  open(reader: SourceReader): void {
    this.#reader = reader
  }
  #ready = false
  take(): Uint8Array | null {
    if (!this.#ready) {
      setImmediate(() => {
        this.#ready = true
        this.#reader!.sourceReady()
      })
      return null
    }
    this.#ready = false
    this.#left--
    return Buffer.from(this.#pieces.shift()!)
  }
  close(): void {
    this.isClosed = true
  }
}

/** All bytes that a feed hands over; the sink blocks after every `blocks`th part. */
async function drained(source: BodySource, blocks: number): Promise<string> {
  let [text, parts, ends, failure] = ['', 0, 0, '']
  let isBlocked = false
  const sink: FeedSink = {
    get isBlocked() {
      return isBlocked
    },
    take: part => {
      parts++
      const { offsets } = part.spans
      for (let i = 0; i < 2 * part.count; i += 2) {
        text += arena.bytes.latin1Slice(offsets[i]!, offsets[i]! + offsets[i + 1]!)
      }
      if (part.last) ends++
      if (blocks <= 0 || parts % blocks !== 0) return WRITE.DONE
      isBlocked = true
      setImmediate(() => {
        isBlocked = false
        feed.resume()
      })
      return WRITE.PENDING
    },
    feedEnds: () => undefined,
    feedFailed: cause => {
      failure = cause
    },
    feedThrew: error => {
      failure = String(error)
    },
  }
  const trailerHeads = new HeadPool(4)
  const part = { spans: new BodySpans(), count: 0, floor: 0, last: false, trailers: trailerHeads.scratch, buffer: null }
  const context = { part, trailerHeads, memory: new ReadMemory(16_384) } as unknown as ConnectionContext
  const feed: BodyFeed = new BodyFeed(source, sink, context)
  feed.begin()
  await eventually('the last part', () => ends > 0 || failure !== '')
  if (failure !== '') throw new Error(failure)
  assert.equal(ends, 1)
  return text
}

for (const blocks of [0, 1, 2, 3]) {
  test(`a body of unknown length is fed as it comes, to a sink that blocks every ${blocks} parts`, async () => {
    const [source, empty] = [new LateSource(['ab', 'c', 'def']), new LateSource([])]
    const chunks = arena.acquiredChunks
    assert.equal(await drained(source, blocks), 'abcdef')
    assert.equal(await drained(empty, blocks), '')
    assert.ok(source.isClosed && empty.isClosed)
    // The read memory of each feed.
    assert.ok(arena.acquiredChunks <= chunks + 2)
  })
}
