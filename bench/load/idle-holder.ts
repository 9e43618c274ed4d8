/**
 * Opens connections, sends one request on each, and keeps them open: `node idle-holder.ts PORT PATH COUNT [KIND]`.
 * The kind `upgraded` opens WebSocket connections, the file of a certificate chain TLS connections. Prints `held N`
 * when all are open, `alive N` for each line of input, and ends with its input.
 */
import { requestHead } from '../request-head.ts'
import { upgradeRequest } from '../websocket.ts'
import { LoadConnection, type LoadConnectionCallbacks } from './load-connection.ts'

/** Few enough for any listen backlog. */
const CONCURRENT_OPENS = 100

class IdleHolder implements LoadConnectionCallbacks {
  readonly #port: number
  readonly #request: Uint8Array
  readonly #count: number
  readonly #chainFile: string | undefined
  #started = 0
  #settled = 0
  readonly #held = new Set<LoadConnection>()

  constructor(port: number, request: Buffer, count: number, chainFile: string | undefined) {
    this.#chainFile = chainFile
    this.#port = port
    this.#request = request
    this.#count = count
  }

  get alive(): number {
    return this.#held.size
  }

  start(): void {
    for (let i = 0; i < CONCURRENT_OPENS; i++) this.#next()
  }

  #next(): void {
    if (this.#started >= this.#count) return
    this.#started++
    new LoadConnection(this.#port, this, false, this.#chainFile).open()
  }

  #settle(): void {
    if (++this.#settled === this.#count) console.log(`held ${this.#held.size}`)
    else this.#next()
  }

  onOpened(connection: LoadConnection): void {
    connection.send(this.#request, 0)
  }

  onResponse(connection: LoadConnection, _status: number): void {
    this.#held.add(connection)
    this.#settle()
  }

  onLost(connection: LoadConnection): void {
    if (!this.#held.delete(connection)) this.#settle()
  }
}

const [port, path, count, kind] = process.argv.slice(2)
const isUpgraded = kind === 'upgraded'
const request = isUpgraded ? upgradeRequest(path!) : Buffer.from(requestHead('GET', path!), 'latin1')
const holder = new IdleHolder(Number(port), request, Number(count), isUpgraded ? undefined : kind)
holder.start()
process.stdin.on('data', () => console.log(`alive ${holder.alive}`))
process.stdin.on('end', () => process.exit(0))
