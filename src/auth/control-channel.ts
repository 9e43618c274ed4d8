/** The reactor's end of its channel to the control thread: updates come in, calls go out. */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import {
  type AuthUpdate,
  type ControlCall,
  ControlCallFailed,
  type ControlCallResults,
  type ControlMessage,
} from './control-protocol.ts'
import type { ControlChannel } from './auth-state.ts'
import { CallChannel, type CallLimits } from '../runtime/call-channel.ts'

const LIMITS: CallLimits = { pendingMax: 1024, timeoutMs: 5000 }
/** Share of the pending calls that one kind may take: a silent issuer leaves room for calls of other kinds. */
const KIND_SHARE = 0.75

export class PortControlChannel implements ControlChannel {
  readonly #port: MessagePort
  readonly #apply: (update: AuthUpdate) => void
  readonly #calls: CallChannel<ControlCall, ControlCallResults>
  #isClosed = false

  /** `limits`: for tests. */
  constructor(port: MessagePort, apply: (update: AuthUpdate) => void, limits = LIMITS) {
    this.#port = port
    this.#apply = apply
    const pendingOfKindMax = Math.ceil(limits.pendingMax * KIND_SHARE)
    this.#calls = new CallChannel('the control thread', port, { ...limits, pendingOfKindMax }, ControlCallFailed)
    port.on('message', (message: ControlMessage) => this.#receive(message))
    port.on('close', () => this.#closed())
    // The channel alone keeps no reactor from ending.
    port.unref()
  }

  /** Applies, in this turn of the event loop, every update that was posted before. */
  drain(): void {
    if (this.#isClosed) return
    for (let got = receiveMessageOnPort(this.#port); got !== undefined; got = receiveMessageOnPort(this.#port)) {
      this.#receive(got.message as ControlMessage)
    }
  }

  /** Rejects with ControlCallFailed. */
  call<One extends ControlCall>(call: One): Promise<ControlCallResults[One['kind']]> {
    return this.#calls.call(call)
  }

  close(): void {
    this.#closed()
    this.#port.close()
  }

  #receive(message: ControlMessage): void {
    if (message.kind === 'update') this.#apply(message.update)
    else this.#calls.settle(message)
  }

  #closed(): void {
    this.#isClosed = true
    this.#calls.close('the control thread has ended')
  }
}
