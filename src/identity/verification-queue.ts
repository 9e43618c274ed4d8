/**
 * Signatures are checked on the threads of libuv, which all reactors share with everything else that goes there. So
 * many at once and so many waiting: a flood of new tokens takes neither those threads nor the memory of a reactor.
 */
import { verify } from 'node:crypto'
import type { SignatureCheck } from './jwt-signature.ts'

/** In all reactors together. */
const AT_ONCE = 64
/** In one reactor. */
const WAITING_MAX = 1024

interface Job {
  readonly check: SignatureCheck
  readonly signedPart: Buffer
  readonly signature: Buffer
  done(isGenuine: boolean): void
  failed(cause: Error): void
}

export class VerificationQueue {
  readonly #atOnce: number
  readonly #waiting: Job[] = []
  #running = 0

  /** `reactors`: of the gateway. */
  constructor(reactors: number) {
    this.#atOnce = Math.max(1, Math.floor(AT_ONCE / reactors))
  }

  get isFull(): boolean {
    return this.#waiting.length >= WAITING_MAX
  }

  /** Not while it is full. Rejects where no answer could be had. */
  verify(check: SignatureCheck, signedPart: Buffer, signature: Buffer): Promise<boolean> {
    return new Promise((done, failed) => {
      this.#waiting.push({ check, signedPart, signature, done, failed })
      this.#next()
    })
  }

  #next(): void {
    if (this.#running >= this.#atOnce) return
    const job = this.#waiting.shift()
    if (job === undefined) return
    this.#running++
    verify(job.check.digest, job.signedPart, job.check.key, job.signature, (error, isGenuine) => {
      this.#running--
      if (error === null) job.done(isGenuine)
      else job.failed(error)
      this.#next()
    })
  }
}
