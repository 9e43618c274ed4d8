/** TLS records that come faster than their owner reads. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { eventually, quiet } from '../harness/peers.ts'
import { nodeClient, SecuredListener, serverPlan, tcpClient } from './secured.ts'

/** Collects the writes of TLS and sends them in one write. */
class Gathering extends Duplex {
  readonly #tcp: Socket
  #held: Buffer[] | null = null

  constructor(tcp: Socket) {
    super()
    this.#tcp = tcp
    tcp.on('data', bytes => this.push(bytes))
  }

  override _read(): void {}

  hold(): void {
    this.#held = []
  }

  letGo(): void {
    this.#tcp.write(Buffer.concat(this.#held ?? []))
    this.#held = null
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    if (this.#held === null) this.#tcp.write(bytes)
    else this.#held.push(bytes)
    done()
  }
}

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${version}: of two records in one read, the waiting one is not in the owner's memory`, async t => {
    const listener = await SecuredListener.open(serverPlan({ maxVersion: version }))
    t.after(() => listener.close())
    const gathering = new Gathering(await tcpClient(listener.port))
    const client = nodeClient(listener.port, { socket: gathering, maxVersion: version })
    await once(client.socket, 'secureConnect')
    const owner = await listener.next()
    const sent = ['first', 'second']
    gathering.hold()
    for (const text of sent) await new Promise(resolve => client.socket.write(text, resolve))
    owner.onData = () => {
      owner.view.fill(0)
      owner.socket.setReading(false)
    }
    gathering.letGo()
    await eventually('the first of it', () => owner.length > 0)
    while (owner.length < sent.join('').length) {
      await quiet()
      owner.view.fill(0)
      owner.socket.setReading(true)
    }
    assert.equal(owner.text, sent.join(''))
    client.socket.destroy()
  })
}
