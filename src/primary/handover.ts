/**
 * A node replaces itself by another process without closing a port (D177): it starts its successor as a child process
 * that inherits the listening sockets, and ends when the successor serves. This file has both sides: `Successor` in the
 * old process, `Predecessor` in the new one.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { SocketTable } from '../plan/listening-sockets.ts'

/** Names the sockets in the environment of the successor. */
const VARIABLE = 'SLUICE_HANDOVER'
/** The first descriptors of a child process: standard streams, and the channel between both. */
const FIRST_DESCRIPTOR = 4
/** For the configuration, APIs and key stores of the successor, and then for its threads. */
const STEP_MS = 120_000

/** Message of the successor. */
type Progress =
  /** The configuration of the successor is valid; it has changed nothing and waits for `begin`. */
  | 'loaded'
  /** The reactors of the successor accept connections, and it waits for `take`. */
  | 'serving'
  /** The successor holds the data folder. */
  | 'done'
/** Orders of the predecessor. `begin`: it changes nothing any more. `take`: it has released the data folder. */
type Order = 'begin' | 'take'

interface Handed {
  readonly sockets: SocketTable
  /** Descriptors without a use. */
  readonly spare: readonly number[]
}

/** The successor cannot take over; the message says why. The predecessor goes on. */
export class HandoverFailed extends Error {
  override readonly name = 'HandoverFailed'
}

/** Files of the program that takes over: Node and its entry. */
export interface SuccessorProgram {
  readonly node: string
  readonly entry: string
}

/** The new process, seen from the old one. */
export class Successor {
  readonly #child: ChildProcess
  readonly #reached = new Map<Progress, PromiseWithResolvers<void>>()

  /** Starts the process, with the arguments of this one. `inherited`: descriptors that this process has inherited. */
  constructor({ node, entry }: SuccessorProgram, sockets: SocketTable, inherited: number) {
    for (const step of ['loaded', 'serving', 'done'] as const) {
      const reached = Promise.withResolvers<void>()
      // Only one step is awaited at a time.
      reached.promise.catch(() => {})
      this.#reached.set(step, reached)
    }
    const fds = Object.values(sockets).flat()
    // Inherited descriptors would be inherited again: each gets another use, or none.
    const slots = Math.max(fds.length, inherited)
    const stdio = Array.from({ length: slots }, (_, slot) => fds[slot] ?? 'ignore')
    let next = FIRST_DESCRIPTOR
    const named = Object.entries(sockets).map(([name, all]) => [name, all.map(() => next++)] as const)
    const handed: Handed = {
      sockets: Object.fromEntries(named),
      spare: Array.from({ length: slots - fds.length }, (_, slot) => next + slot),
    }
    this.#child = spawn(node, [entry, ...process.argv.slice(2)], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...stdio],
      env: { ...process.env, [VARIABLE]: JSON.stringify(handed) },
    })
    this.#child.on('message', (progress: Progress) => this.#reached.get(progress)?.resolve())
    this.#child.on('error', ({ message }) => this.#failed(`the new process does not start: ${message}`))
    this.#child.on('exit', (code, signal) => this.#failed(`the new process ended with ${code ?? signal}; see the log`))
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  #failed(cause: string): void {
    for (const { reject } of this.#reached.values()) reject(new HandoverFailed(cause))
  }

  /** Rejects with HandoverFailed. */
  async until(progress: Progress): Promise<void> {
    const late = setTimeout(() => this.#failed(`the new process is not '${progress}' after ${STEP_MS} ms`), STEP_MS)
    try {
      await this.#reached.get(progress)!.promise
    } finally {
      clearTimeout(late)
    }
  }

  tell(order: Order): void {
    // A failure to send is no error of its own: the exit of the process is reported.
    this.#child.send(order, () => {})
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  /** Ends the conversation, so that this process can end before the new one. */
  release(): void {
    this.#child.removeAllListeners()
    this.#child.unref()
    if (this.#child.connected) this.#child.disconnect()
  }
}

/** The old process, seen from the new one. */
export class Predecessor {
  readonly inherited: number
  readonly #sockets: Map<string, readonly number[]>
  readonly #told = new Map<Order, PromiseWithResolvers<void>>()

  private constructor({ sockets, spare }: Handed) {
    this.#sockets = new Map(Object.entries(sockets))
    this.inherited = Object.values(sockets).flat().length + spare.length
    for (const fd of spare) closeSync(fd)
    for (const order of ['begin', 'take'] as const) this.#told.set(order, Promise.withResolvers<void>())
    process.on('message', (order: Order) => this.#told.get(order)?.resolve())
    // The old process is gone: the sockets are here, and nothing is left to wait for.
    process.on('disconnect', () => {
      for (const { resolve } of this.#told.values()) resolve()
    })
  }

  /** Null: this process replaces no other one. */
  static find(): Predecessor | null {
    const { [VARIABLE]: handed } = process.env
    delete process.env[VARIABLE]
    return handed === undefined || !process.connected ? null : new Predecessor(JSON.parse(handed) as Handed)
  }

  has(name: string): boolean {
    return this.#sockets.has(name)
  }

  /** The sockets of this name, for one use. */
  take(name: string): readonly number[] {
    const taken = this.#sockets.get(name) ?? []
    this.#sockets.delete(name)
    return taken
  }

  /** Closes the sockets that the new configuration has no use for. */
  closeRest(): void {
    for (const fd of [...this.#sockets.values()].flat()) closeSync(fd)
    this.#sockets.clear()
  }

  /** Says how far this process is, and waits for its next order. */
  async reached(progress: Exclude<Progress, 'done'>): Promise<void> {
    this.#say(progress)
    await this.#told.get(progress === 'loaded' ? 'begin' : 'take')!.promise
  }

  done(): void {
    this.#say('done')
    process.removeAllListeners('message')
    process.channel?.unref()
  }

  #say(progress: Progress): void {
    if (process.connected) process.send!(progress, () => {})
  }
}
