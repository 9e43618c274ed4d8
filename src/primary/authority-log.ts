/** What the log says of the authority's thread, on every node that has one. */
import type { KeeperWatcher } from './authority-keeper.ts'
import type { Log } from '../observe/log.ts'

export function authorityLog(log: Log): Pick<KeeperWatcher, 'event' | 'died'> {
  return {
    event: ({ level, event, fields }) => log[level]({ THREAD: 'authority', ...fields }, event),
    died: (cause, pauseMs) =>
      log.error({ CAUSE_OF_ERROR: cause, PAUSE_MS: pauseMs }, 'the authority has ended, and another one begins'),
  }
}
