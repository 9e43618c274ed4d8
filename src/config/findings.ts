/** What is wrong, and what is worth knowing, in files and texts that keys lead to: all of it, never only the first. */
import type { Fault } from './fault.ts'

export class Findings {
  readonly faults: Fault[] = []
  readonly warnings: Fault[] = []
  /** Things an operator should find in the log, with their fields. */
  readonly notes: { readonly message: string; readonly fields: Readonly<Record<string, string>> }[] = []

  /** `key`: whole path of a key, or an element of a profile file with its place. */
  fault(where: string, key: string, expected: string, remedy: string, given = ''): undefined {
    this.faults.push({ where, key, given, expected, remedy })
    return undefined
  }

  warn(where: string, key: string, expected: string, remedy: string, given = ''): void {
    this.warnings.push({ where, key, given, expected, remedy })
  }

  note(message: string, fields: Readonly<Record<string, string>>): void {
    this.notes.push({ message, fields })
  }
}
