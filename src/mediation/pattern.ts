/**
 * Regular expressions of sequences: Java's syntax as far as it can be matched in linear time. Their subjects are chosen
 * by clients, and with a backtracking engine one client could block the thread.
 */
import { compilePattern, type Pattern } from '../runtime/pattern.ts'

interface ParsedPattern {
  /** undefined where the text is refused. */
  readonly pattern?: string
  /** Number of capturing groups. */
  readonly groups: number
  /** Reason of a refusal, and what to do about it; '' otherwise. */
  readonly why: string
  readonly hint: string
}

const LENGTH_MAX = 1024

export function parsePattern(pattern: string): ParsedPattern {
  const refused = (why: string, hint: string) => ({ groups: 0, why, hint })
  if (pattern.length > LENGTH_MAX) return refused(`is longer than ${LENGTH_MAX} characters`, 'write a shorter one')
  // RE2 takes the && of Java's class intersection for two ampersands, and would match something else.
  if (/\[[^\]]*&&/.test(pattern)) return refused('has an intersection of classes', 'write the class out')
  try {
    return { pattern, groups: compilePattern(pattern).groupCount(), why: '', hint: '' }
  } catch (error) {
    const reason = (error as Error).message.replace(/^error parsing regexp: /, '')
    const hint = 'correct it; look-arounds and back references are not supported'
    return refused(`is not a valid regular expression: ${reason}`, hint)
  }
}

/** Longest subject; a longer one does not match. */
const SUBJECT_MAX = 8192

/** Groups of a text that matches as a whole, group 0 first; null where it does not match. */
type Match = (text: string) => readonly string[] | null

/** Compiles the pattern with its first use. `warn`: called for a text that is too long. */
export function compileMatcher(pattern: string, warn: (cause: string) => void): Match {
  let compiled: Pattern | undefined
  return text => {
    if (text.length > SUBJECT_MAX) {
      warn(`a text of more than ${SUBJECT_MAX} characters matches nothing`)
      return null
    }
    compiled ??= compilePattern(pattern)
    const matcher = compiled.matcher(text)
    if (!matcher.matches()) return null
    return Array.from({ length: compiled.groupCount() + 1 }, (_, group) => matcher.group(group) ?? '')
  }
}
