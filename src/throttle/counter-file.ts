/**
 * The counters of a node in a file, so that windows of a minute and longer survive a restart and kill -9
 * (`apim.throttling.enable_persistence`). The file is a log: a snapshot, then what has changed, every half second. A
 * killed process thus loses at most a second of counts. A power failure may lose more: only a snapshot is synced.
 *
 * Layout, little-endian: MAGIC, seed of the hashes (16 bytes), then batches. A batch is its length and the CRC-32 of
 * its bytes (4 bytes each), and records. A key record says which counter has a slot from here on; a count record says
 * what that counter has used. Reading ends at the first batch that is incomplete or damaged.
 */
import { readFileSync, statSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { type CounterEntry, CounterListing } from './counter-listing.ts'
import { CounterTable } from './counter-table.ts'
import { QUOTA_TYPES, UNITS } from './counter-memory.ts'
import { windowStartMs } from './window.ts'

/** Windows shorter than this, in milliseconds, begin anew after a restart. */
const PERSISTED_WINDOW_MS = 60_000
const INTERVAL_MS = 500
/** The file is written anew when changes take this many times the bytes of its snapshot, and at least FLOOR_BYTES. */
const GROWTH_MAX = 3
const FLOOR_BYTES = 16 * 1024 * 1024
/** Slots that are looked at in one turn of the event loop. */
const SLOTS_AT_ONCE = 4096
const BATCH_BYTES = 1024 * 1024

const MAGIC = Buffer.from('SLUICE-COUNTERS1')
const SEED_BYTES = 16
const BATCH_HEAD = 8
/** Labels have at most 95 bytes. */
const TEXT_MAX = 95
const KEY_RECORD = 1
const COUNT_RECORD = 2
const HASH_CELLS = 4
/** Bytes of a key record without its texts, and of a count record. */
const KEY_BYTES = 1 + 4 + 16 + 3 + 4 + 8
const COUNT_BYTES = 1 + 4 + 8 + 8 + 8 + 4
const MODE = 0o600

interface SavedCounters {
  /** Seed of the hashes; undefined: no counter was saved. */
  readonly seed: Uint8Array | undefined
  readonly entries: readonly CounterEntry[]
  /** Why the file, or its end, could not be read; '' where it could. */
  readonly damage: string
}

type SavedKey = Pick<CounterEntry, 'label' | 'policy' | 'quota' | 'hash'>

/** Reads the file of a process that has ended. */
export function readCounterFile(path: string): SavedCounters {
  try {
    // A device or a pipe in its place would be read without end.
    if (!statSync(path).isFile()) return { seed: undefined, entries: [], damage: 'it is no file' }
    return decode(readFileSync(path))
  } catch (error) {
    const { code = 'EIO' } = error as NodeJS.ErrnoException
    return { seed: undefined, entries: [], damage: code === 'ENOENT' ? '' : `it cannot be read (${code})` }
  }
}

/** Memory with the counters of a file whose windows are not over. `damage`: as of `readCounterFile`. */
export function restoreCounters(
  path: string,
  capacity: number,
  owner: number,
): { readonly memory: SharedArrayBuffer; readonly damage: string } {
  const { seed, entries, damage } = readCounterFile(path)
  const memory = CounterTable.allocate(capacity, seed)
  const counters = new CounterListing(new CounterTable(memory, Date.now, owner))
  for (const entry of entries) counters.restore(entry)
  return { memory, damage }
}

function decode(bytes: Buffer): SavedCounters {
  const start = MAGIC.length + SEED_BYTES
  if (bytes.length < start || !bytes.subarray(0, MAGIC.length).equals(MAGIC))
    return { seed: undefined, entries: [], damage: 'it does not begin as a file of counters' }
  const keys = new Map<number, SavedKey>()
  const counters = new Map<number, CounterEntry>()
  let at = start
  let damage = ''
  while (at < bytes.length) {
    const batch = batchAt(bytes, at)
    if (batch === undefined) {
      damage = `its last ${bytes.length - at} bytes are incomplete`
      break
    }
    readRecords(batch, keys, counters)
    at += BATCH_HEAD + batch.length
  }
  return { seed: Uint8Array.from(bytes.subarray(MAGIC.length, start)), entries: [...counters.values()], damage }
}

/** Undefined: the bytes at `at` are no whole batch. */
function batchAt(bytes: Buffer, at: number): Buffer | undefined {
  if (at + BATCH_HEAD > bytes.length) return undefined
  const end = at + BATCH_HEAD + bytes.readUInt32LE(at)
  const batch = bytes.subarray(at + BATCH_HEAD, end)
  return end <= bytes.length && crc32(batch) === bytes.readUInt32LE(at + 4) ? batch : undefined
}

function readRecords(batch: Buffer, keys: Map<number, SavedKey>, counters: Map<number, CounterEntry>): void {
  let at = 0
  while (at < batch.length) {
    const slot = batch.readUInt32LE(at + 1)
    if (batch[at] === KEY_RECORD) {
      const textAt = at + KEY_BYTES
      const label = textOf(batch, textAt)
      const policy = textOf(batch, textAt + 1 + batch[textAt]!)
      keys.set(slot, { ...keyOf(batch, at), label, policy })
      at = textAt + 2 + batch[textAt]! + batch[textAt + 1 + batch[textAt]!]!
      continue
    }
    const key = keys.get(slot)
    if (key !== undefined) counters.set(slot, countOf(batch, at, key))
    at += COUNT_BYTES
  }
}

function keyOf(batch: Buffer, at: number): Pick<SavedKey, 'quota' | 'hash'> {
  const hash = Int32Array.from([5, 9, 13, 17], offset => batch.readInt32LE(at + offset))
  const quota = {
    type: QUOTA_TYPES[batch[at + 21]!]!,
    unit: UNITS[batch[at + 22]!]!,
    window: batch[at + 23] === 1 ? 'sliding' : 'tumbling',
    units: batch.readUInt32LE(at + 24),
    limit: batch.readDoubleLE(at + 28),
  } as const
  return { hash, quota }
}

function countOf(batch: Buffer, at: number, key: SavedKey): CounterEntry {
  const window = batch.readDoubleLE(at + 5)
  return {
    ...key,
    window,
    used: batch.readDoubleLE(at + 13),
    usedBefore: batch.readDoubleLE(at + 21),
    refused: batch.readInt32LE(at + 29),
    endsMs: windowStartMs(window + 1, key.quota.unit, key.quota.units),
  }
}

function textOf(batch: Buffer, at: number): string {
  return batch.toString('utf8', at + 1, at + 1 + batch[at]!)
}

/** Writes the counters of a table until it is closed. */
export class CounterFile {
  readonly #path: string
  readonly #counters: CounterListing
  /** `cause`: of a failed write; '' when writing succeeds again. Called once per change. */
  readonly #reported: (cause: string) => void
  /** State of each slot in the file. */
  #seen: Int32Array
  /** Null until there is a file with a whole snapshot. */
  #handle: FileHandle | null = null
  #batch: Batch | null = null
  #snapshotBytes = 0
  #bytes = 0
  #isFailing = false
  /** Null: closed, or not open yet. */
  #timer: NodeJS.Timeout | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(path: string, counters: CounterListing, reported: (cause: string) => void) {
    this.#path = path
    this.#counters = counters
    this.#reported = reported
    this.#seen = counters.unseen()
  }

  /** Writes a snapshot and then, until `close`, every half second what has changed. */
  open(): void {
    this.#schedule(0)
  }

  /** Writes the last changes and ends; a second call, and one without `open`, does nothing. */
  async close(): Promise<void> {
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
    await this.#writing
    await this.#write()
    await this.#closeFile()
  }

  #schedule(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#writing = this.#write().then(() => {
        if (this.#timer !== null) this.#schedule(INTERVAL_MS)
      })
    }, ms)
    this.#timer.unref()
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    try {
      const isGrown = this.#bytes > Math.max(FLOOR_BYTES, GROWTH_MAX * this.#snapshotBytes)
      if (this.#handle === null || isGrown) await this.#writeSnapshot()
      else await this.#append(this.#handle)
      if (this.#isFailing) this.#reported('')
      this.#isFailing = false
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (!this.#isFailing) this.#reported(code ?? message)
      this.#isFailing = true
      // The end of the file may be half a batch, behind which nothing can be read.
      await this.#closeFile()
    }
  }

  /** A new file takes the place of the old one when it is whole. */
  async #writeSnapshot(): Promise<void> {
    await this.#closeFile()
    const temporary = `${this.#path}.new`
    await rm(temporary, { force: true })
    const handle = await open(temporary, 'wx', MODE)
    try {
      await handle.writeFile(Buffer.concat([MAGIC, this.#counters.seed]))
      this.#seen = this.#counters.unseen()
      this.#bytes = 0
      await this.#append(handle)
      await handle.sync()
      await rename(temporary, this.#path)
    } catch (error) {
      await handle.close().catch(() => {})
      throw error
    }
    this.#handle = handle
    this.#snapshotBytes = this.#bytes
    this.#bytes = 0
  }

  async #append(handle: FileHandle): Promise<void> {
    this.#batch ??= new Batch()
    const batch = this.#batch
    const { slots } = this.#counters
    for (let from = 0; from < slots; from += SLOTS_AT_ONCE) {
      const part = { seen: this.#seen, from, to: from + SLOTS_AT_ONCE }
      this.#counters.changes(part, PERSISTED_WINDOW_MS, (slot, entry, isNew) => {
        if (isNew) batch.addKey(slot, entry)
        batch.addCount(slot, entry)
      })
      const isLast = from + SLOTS_AT_ONCE >= slots
      if (batch.isEmpty || !(isLast || batch.isFull)) continue
      const bytes = batch.finish()
      await handle.writeFile(bytes)
      this.#bytes += bytes.length
    }
  }

  async #closeFile(): Promise<void> {
    const handle = this.#handle
    this.#handle = null
    await handle?.close().catch(() => {})
  }
}

/** Composes batches in one buffer, which has room for all slots of a turn behind a batch that is not full. */
class Batch {
  readonly #bytes = Buffer.allocUnsafe(BATCH_BYTES + SLOTS_AT_ONCE * (KEY_BYTES + 2 * (TEXT_MAX + 1) + COUNT_BYTES))
  #length = BATCH_HEAD

  get isEmpty(): boolean {
    return this.#length === BATCH_HEAD
  }

  get isFull(): boolean {
    return this.#length > BATCH_BYTES
  }

  addKey(slot: number, { hash, quota, label, policy }: SavedKey): void {
    const bytes = this.#bytes
    const at = this.#length
    bytes[at] = KEY_RECORD
    bytes.writeUInt32LE(slot, at + 1)
    for (let i = 0; i < HASH_CELLS; i++) bytes.writeInt32LE(hash[i]!, at + 5 + 4 * i)
    bytes[at + 21] = QUOTA_TYPES.indexOf(quota.type)
    bytes[at + 22] = UNITS.indexOf(quota.unit)
    bytes[at + 23] = quota.window === 'sliding' ? 1 : 0
    bytes.writeUInt32LE(quota.units, at + 24)
    bytes.writeDoubleLE(quota.limit, at + 28)
    this.#length = this.#addText(this.#addText(at + KEY_BYTES, label), policy)
  }

  addCount(slot: number, { window, used, usedBefore, refused }: CounterEntry): void {
    const bytes = this.#bytes
    const at = this.#length
    bytes[at] = COUNT_RECORD
    bytes.writeUInt32LE(slot, at + 1)
    bytes.writeDoubleLE(window, at + 5)
    bytes.writeDoubleLE(used, at + 13)
    bytes.writeDoubleLE(usedBefore, at + 21)
    bytes.writeInt32LE(refused, at + 29)
    this.#length = at + COUNT_BYTES
  }

  #addText(at: number, text: string): number {
    const length = this.#bytes.write(text, at + 1, TEXT_MAX, 'utf8')
    this.#bytes[at] = length
    return at + 1 + length
  }

  /** The batch in memory of its own; the next one begins. */
  finish(): Buffer {
    const records = this.#bytes.subarray(BATCH_HEAD, this.#length)
    this.#bytes.writeUInt32LE(records.length, 0)
    this.#bytes.writeUInt32LE(crc32(records), 4)
    const whole = Buffer.from(this.#bytes.subarray(0, this.#length))
    this.#length = BATCH_HEAD
    return whole
  }
}
