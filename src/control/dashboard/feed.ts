/**
 * Sends what the dashboard shows to its viewers as server-sent events. All viewers share one gathering, a round per
 * second, and without a viewer nothing is gathered. A viewer gets the whole state first, then one merge patch per
 * round. A viewer that does not keep up skips rounds and gets the whole state again; its queue stays bounded.
 */
import type { DashboardPart, DashboardParts } from '../../plan/dashboard-messages.ts'
import { mergePatch } from './merge-patch.ts'

const ROUND_MS = 1000
/** Rounds between two gatherings of a part. */
const EVERY = { live: 1, lists: 2, apis: 5 } as const satisfies Partial<Record<DashboardPart, number>>
const PARTS = Object.keys(EVERY) as readonly (keyof typeof EVERY)[]
export const VIEWERS_MAX = 32
/** Bytes that may wait for one viewer. */
const QUEUE_BYTES_MAX = 1024 * 1024
const LATE_ROUNDS_MAX = 30
/** Rounds between two checks whether a viewer is still signed in. */
const CHECKED_EVERY = 10

interface Viewer {
  /** The session that the viewer has signed in with. */
  readonly session: object
  /** Rejects while this cannot be found out: then the viewer stays. */
  readonly isAllowed: () => Promise<boolean>
}

interface Stream extends Viewer {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  /** The next message is the whole state. */
  needsAll: boolean
  lateRounds: number
}

interface FeedOptions {
  /** Rejects with an error whose message may be shown. */
  readonly gather: (parts: readonly DashboardPart[]) => Promise<DashboardParts>
  readonly roundMs?: number
}

export class DashboardFeed {
  readonly #options: FeedOptions
  readonly #streams = new Set<Stream>()
  #state: DashboardParts = {}
  #timer: NodeJS.Timeout | undefined
  #round = 0
  #isGathering = false

  constructor(options: FeedOptions) {
    this.#options = options
  }

  /** Null: there are as many viewers as may be. */
  open(viewer: Viewer): ReadableStream<Uint8Array> | null {
    if (this.#streams.size >= VIEWERS_MAX) return null
    let stream: Stream
    return new ReadableStream<Uint8Array>(
      {
        start: controller => {
          stream = { ...viewer, controller, needsAll: true, lateRounds: 0 }
          this.#add(stream)
        },
        cancel: () => this.#remove(stream),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: QUEUE_BYTES_MAX }),
    )
  }

  /** Ends the streams of a session. */
  end(session: object): void {
    for (const stream of this.#streams) if (stream.session === session) this.#close(stream, 'signed-out')
  }

  close(): void {
    for (const stream of this.#streams) this.#close(stream, '')
  }

  #add(stream: Stream): void {
    this.#streams.add(stream)
    if (this.#timer !== undefined) return
    this.#round = 0
    this.#timer = setInterval(() => void this.#run(), this.#options.roundMs ?? ROUND_MS)
    void this.#run()
  }

  #remove(stream: Stream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#state = {}
  }

  /** `event`: the last one; '' for none. */
  #close(stream: Stream, event: string): void {
    this.#remove(stream)
    if (event !== '') stream.controller.enqueue(encoded(event, {}))
    stream.controller.close()
  }

  /** A round that takes longer than its interval delays the next one. */
  async #run(): Promise<void> {
    if (this.#isGathering) return
    this.#isGathering = true
    const round = this.#round++
    try {
      const parts = PARTS.filter(part => round % EVERY[part] === 0)
      const found = await this.#options.gather(parts)
      if (this.#streams.size > 0) this.#send(found)
    } catch (error) {
      const message = encoded('trouble', { cause: (error as Error).message })
      for (const { controller } of this.#streams) if (hasRoom(controller)) controller.enqueue(message)
    } finally {
      this.#isGathering = false
    }
    if (round % CHECKED_EVERY === 0) await this.#check()
  }

  #send(found: DashboardParts): void {
    const before = this.#state
    const after = { ...before, ...found }
    this.#state = after
    let all: Uint8Array | null = null
    let patch: Uint8Array | null = null
    for (const stream of this.#streams) {
      if (!hasRoom(stream.controller)) {
        stream.needsAll = true
        if (++stream.lateRounds > LATE_ROUNDS_MAX) this.#close(stream, '')
        continue
      }
      stream.lateRounds = 0
      if (stream.needsAll) all ??= encoded('state', after)
      else patch ??= encoded('patch', mergePatch(before, after) ?? {})
      stream.controller.enqueue(stream.needsAll ? all! : patch!)
      stream.needsAll = false
    }
  }

  async #check(): Promise<void> {
    for (const stream of [...this.#streams]) {
      const isAllowed = await stream.isAllowed().catch(() => true)
      if (!isAllowed && this.#streams.has(stream)) this.#close(stream, 'signed-out')
    }
  }
}

function hasRoom({ desiredSize }: ReadableStreamDefaultController<Uint8Array>): boolean {
  return (desiredSize ?? 0) > 0
}

/** JSON holds no line break, so one data line is enough. */
function encoded(event: string, data: object): Uint8Array {
  return new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}
