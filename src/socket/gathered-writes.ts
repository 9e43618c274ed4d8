/**
 * Gathers small writes of one turn of the event loop, which leave together at the end of that turn. Peers on another
 * processor are woken once for all of them, which saves a tenth of the system time (D183). One list per thread.
 */
import { loopTurn } from '../runtime/event-clock.ts'

/** Writes of a turn from which on they are gathered. With fewer, peers and gateway work at the same time rather. */
const WRITES_MIN = 5
/** While nothing is gathered, one write in so many begins a turn that is watched. */
const UNWATCHED_WRITES = 16
/** Turns that the mean covers. */
const MEAN_TURNS = 8
/** A longer write leaves at once: its bytes cost more than a wake-up. */
const SLOT_BYTES = 4096
/** Slots of a thread. A write that finds none leaves at once, so this bounds the memory: 512 KiB. */
const SLOTS_MAX = 128
/** Views that a slot keeps, by length: most messages of a connection have few lengths. */
const VIEWS = 8

/** Memory for the bytes of one gathered write. */
export class Slot {
  readonly #memory = new Uint8Array(SLOT_BYTES)
  readonly #views: (Uint8Array | undefined)[] = new Array(VIEWS).fill(undefined)
  #length = 0

  fill(bytes: Uint8Array): void {
    this.#memory.set(bytes)
    this.#length = bytes.length
  }

  get content(): Uint8Array {
    const at = this.#length % VIEWS
    const kept = this.#views[at]
    if (kept !== undefined && kept.length === this.#length) return kept
    const view = this.#memory.subarray(0, this.#length)
    this.#views[at] = view
    return view
  }
}

/** A socket whose gathered bytes leave when `flush` is called, unless they have left before. */
interface GatheringSocket {
  flush(): void
}

const free: Slot[] = []
let slots = 0
const sockets: GatheringSocket[] = []

/** Memory for `bytes`, filled with them; null when they are too long, or leave at once for another reason. */
export function gather(socket: GatheringSocket, bytes: Uint8Array): Slot | null {
  if (bytes.length > SLOT_BYTES || !load.count()) return null
  const slot = free.pop() ?? newSlot()
  if (slot === null) return null
  slot.fill(bytes)
  sockets.push(socket)
  return slot
}

function newSlot(): Slot | null {
  if (slots === SLOTS_MAX) return null
  slots++
  return new Slot()
}

export function releaseSlot(slot: Slot): void {
  free.push(slot)
}

/** Runs in the check phase, which follows the reads of a turn. A failure of one socket goes to the owner of it. */
function flushAll(): void {
  loopTurn.end()
  load.ended()
  for (const socket of sockets) socket.flush()
  sockets.length = 0
}

/** Knows whether this thread has enough to write in each turn. With few writes, a peer would only wait longer. */
class WriteLoad {
  /** Writes per turn, a running mean of the turns that were watched. */
  #mean = 0
  /** Writes of this turn. */
  #writes = 0
  #unwatchedWrites = 0
  leastWrites = WRITES_MIN

  /** Counts a write; returns whether to gather it. */
  count(): boolean {
    const isHigh = this.#mean >= this.leastWrites
    if (loopTurn.number === 0) {
      if (!isHigh && ++this.#unwatchedWrites < UNWATCHED_WRITES) return false
      this.#unwatchedWrites = 0
      loopTurn.watch()
      setImmediate(flushAll)
    }
    this.#writes++
    return isHigh
  }

  /** The turn ends. */
  ended(): void {
    this.#mean += (this.#writes - this.#mean) / MEAN_TURNS
    this.#writes = 0
  }
}

const load = new WriteLoad()

/** Gathers in every turn of the thread, whatever its load: tests send few requests at a time. */
export function gatherAlways(): void {
  load.leastWrites = 0
}
