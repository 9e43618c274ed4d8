/**
 * Signs of life of this thread from within work that blocks its event loop, and whose length is bounded. Without one
 * the thread would be taken for one that hangs where it gets little processor time.
 */
let show: () => void = () => undefined

/** Work that blocks the thread has come further. */
export function showLife(): void {
  show()
}

/** Sets who hears of signs of life. */
export function watchLife(watcher: () => void): void {
  show = watcher
}
