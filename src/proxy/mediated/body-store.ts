/** Limits and memory of the bodies that a reactor collects, and the files of those that are long. */
import { close, copyFile, link, open, read, unlink, write } from 'node:fs'
import { promisify } from 'node:util'
import type { BodyLimits } from '../../plan/reactor-plan.ts'
import { temporaryPath } from '../../runtime/temporary-files.ts'

/** Bytes of all bodies that a reactor holds in memory; beyond, each goes to a file whatever its length. */
const HELD_BYTES_MAX = 64 * 1024 * 1024

/** Functions of `node:fs` that never block the reactor. */
export const files = {
  open: promisify(open),
  close: promisify(close),
  copy: promisify(copyFile),
  link: promisify(link),
  read: promisify(read),
  write: promisify(write),
}

/** One per reactor. */
export class BodyStore {
  /** A reload replaces it; a body under way keeps the limits that it began with. */
  limits: BodyLimits
  readonly #folder: string | undefined
  #heldBytes = 0

  /** `folder`: of the files; by default that of the system for temporary files. */
  constructor(limits: BodyLimits, folder?: string) {
    this.limits = limits
    this.#folder = folder
  }

  /** Bytes of bodies in memory. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  get isFull(): boolean {
    return this.#heldBytes >= HELD_BYTES_MAX
  }

  hold(bytes: number): void {
    this.#heldBytes += bytes
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes
  }

  newPath(): string {
    return temporaryPath(this.#folder)
  }
}

/** Deletes the file of a body; one that is gone already needs no more. */
export function deleteFile(path: string): void {
  unlink(path, () => undefined)
}
