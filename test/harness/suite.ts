/** Fixtures that the tests of a suite or of a file share. */
import { after, before } from 'node:test'

/** Whoever ends what a test has started: the context of the test, or a suite. */
export interface Owner {
  after(end: () => void): void
}

/** Starts once before the tests and ends after them, last first. A suite calls this while it is defined. */
export function sharedBySuite<Fixture>(start: (owner: Owner) => Promise<Fixture>): Promise<Fixture> {
  const ends: (() => void)[] = []
  const { promise, resolve } = Promise.withResolvers<Fixture>()
  before(async () => resolve(await start({ after: end => void ends.push(end) })))
  after(() => {
    for (const end of ends.toReversed()) end()
  })
  return promise
}
