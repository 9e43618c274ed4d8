/**
 * The channels to all reactors: updates go out, calls come in. An update is posted to every reactor before the shared
 * version number goes up: a reactor that reads the new number has all updates in its queue.
 */
import type { MessagePort } from 'node:worker_threads'
import { AuthSnapshot } from './auth-snapshot.ts'
import {
  type AuthUpdate,
  type ControlCall,
  ControlCallFailed,
  type ControlCallResults,
  type ControlMessage,
} from '../auth/control-protocol.ts'
import { type CallMessage, respond } from '../runtime/call-channel.ts'

/** Each rejects, within a bounded time, with ControlCallFailed where it has no result; its message goes to the log. */
export type ControlCallHandlers = {
  readonly [K in ControlCall['kind']]: (call: Extract<ControlCall, { kind: K }>) => Promise<ControlCallResults[K]>
}

interface ReactorChannelsContext {
  /** Any other error of a handler. */
  bug(error: Error): void
}

export class ReactorChannels {
  readonly #snapshot = new AuthSnapshot()
  readonly #ports = new Map<number, MessagePort>()
  readonly #context: ReactorChannelsContext
  #version: Int32Array | null = null
  #handlers: ControlCallHandlers | null = null

  constructor(context: ReactorChannelsContext) {
    this.#context = context
  }

  /** Serves calls from now on. `version`: one cell, the number that reactors compare. */
  open(version: SharedArrayBuffer, handlers: ControlCallHandlers): void {
    this.#version = new Int32Array(version)
    this.#handlers = handlers
  }

  /** Attaches a reactor, possibly before `open`, and posts the snapshot to it. */
  attach(reactor: number, port: MessagePort): void {
    this.#ports.get(reactor)?.close()
    this.#ports.set(reactor, port)
    port.on('message', (message: CallMessage<ControlCall>) => {
      void respond(
        port,
        message,
        call => this.#serve(call),
        error => this.#causeOf(error),
      )
    })
    port.on('close', () => {
      if (this.#ports.get(reactor) === port) this.#ports.delete(reactor)
    })
    for (const update of this.#snapshot.updates()) post(port, { kind: 'update', update })
    this.#raiseVersion()
  }

  /** Every reactor applies the update before its next decision. */
  broadcast(update: AuthUpdate): void {
    this.#snapshot.apply(update)
    for (const port of this.#ports.values()) post(port, { kind: 'update', update })
    this.#raiseVersion()
  }

  #raiseVersion(): void {
    if (this.#version !== null) Atomics.add(this.#version, 0, 1)
  }

  async #serve(call: ControlCall): Promise<unknown> {
    if (this.#handlers === null) throw new ControlCallFailed('the control thread has not started yet')
    const handle = this.#handlers[call.kind] as (call: ControlCall) => Promise<unknown>
    return handle(call)
  }

  /** The message of an unexpected error could hold a credential. */
  #causeOf(error: Error): string {
    if (error instanceof ControlCallFailed) return error.message
    this.#context.bug(error)
    return 'internal error in the control thread'
  }
}

function post(port: MessagePort, message: ControlMessage): void {
  port.postMessage(message)
}
