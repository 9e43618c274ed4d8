/** Files of the embedded databases of mounted APIs. */
import { join } from 'node:path'

/** Longest name of a file without its ends. */
const NAME_CHARS_MAX = 100

/** Path of the database of the API `name`: `api-Notes.db`; what no file name should hold is escaped. */
export function databaseFile(folder: string, name: string): string {
  const safe = encodeURIComponent(name).replaceAll('*', '%2A')
  return join(folder, `api-${safe.slice(0, NAME_CHARS_MAX)}.db`)
}
