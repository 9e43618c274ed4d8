/**
 * Opens connections, makes one request on each, and holds them: `node idle-holder.ts PORT PATH COUNT [upgraded]`, where
 * the last word makes WebSocket connections of them. Prints `held N` when all are open; answers every line on its input
 * with `alive N`; ends when its input ends.
 */
import { requestHead } from '../request-head.ts'
import { upgradeRequest } from '../websocket.ts'
import { LoadConnection, type LoadListener } from './load-connection.ts'

/** As many at a time as fit any listen queue. */
const OPENING_MAX = 100

class IdleHolder implements LoadListener {
  readonly #port: number
  readonly #request: Uint8Array
  readonly #count: number
  #started = 0
  #settled = 0
  readonly #held = new Set<LoadConnection>()

  constructor(port: number, request: Buffer, count: number) {
    this.#port = port
    this.#request = request
    this.#count = count
  }

  get alive(): number {
    return this.#held.size
  }

  start(): void {
    for (let i = 0; i < OPENING_MAX; i++) this.#next()
  }

  #next(): void {
    if (this.#started >= this.#count) return
    this.#started++
    new LoadConnection(this.#port, this, false).open()
  }

  #settle(): void {
    if (++this.#settled === this.#count) console.log(`held ${this.#held.size}`)
    else this.#next()
  }

  opened(connection: LoadConnection): void {
    connection.send(this.#request, 0)
  }

  answered(connection: LoadConnection, _status: number): void {
    this.#held.add(connection)
    this.#settle()
  }

  lost(connection: LoadConnection): void {
    if (!this.#held.delete(connection)) this.#settle()
  }
}

const [port, path, count, kind] = process.argv.slice(2)
const request = kind === 'upgraded' ? upgradeRequest(path!) : Buffer.from(requestHead('GET', path!), 'latin1')
const holder = new IdleHolder(Number(port), request, Number(count))
holder.start()
process.stdin.on('data', () => console.log(`alive ${holder.alive}`))
process.stdin.on('end', () => process.exit(0))
