/**
 * Regular expressions of sequences: the Java syntax in which they are written, as far as it can be matched in linear
 * time. They run over text that clients may have written, and no client may keep the thread busy: backtracking takes
 * seconds for `.*a.*a.*b` and 2 KiB.
 */
import { patternLibrary } from './late-libraries.ts'

interface ReadPattern {
  /** undefined when it is refused. */
  readonly pattern?: string
  /** How many groups it captures. */
  readonly groups: number
  readonly why: string
  readonly remedy: string
}

const LENGTH_MAX = 1024

export function patternOf(pattern: string): ReadPattern {
  const refused = (why: string, remedy: string) => ({ groups: 0, why, remedy })
  if (pattern.length > LENGTH_MAX) return refused(`is longer than ${LENGTH_MAX} characters`, 'write a shorter one')
  // To the library these are two ampersands: it would match something else without a word.
  if (/\[[^\]]*&&/.test(pattern)) return refused('has an intersection of classes', 'write the class out')
  try {
    return { pattern, groups: patternLibrary().compile(pattern).groupCount(), why: '', remedy: '' }
  } catch (error) {
    const said = (error as Error).message.replace(/^error parsing regexp: /, '')
    return refused(`is no regular expression: ${said}`, 'correct it; there are no look-arounds and no back references')
  }
}

/** Of a text that is longer nothing is matched. */
const TEXT_MAX = 8192

/** Groups of a text of which all is matched, the whole first; null when it is not. */
type Match = (text: string) => readonly string[] | null

/** Compiled when it is first asked for. `complain`: a text was too long. */
export function matcherOf(pattern: string, complain: (cause: string) => void): Match {
  let compiled: ReturnType<ReturnType<typeof patternLibrary>['compile']> | undefined
  return text => {
    if (text.length > TEXT_MAX) {
      complain(`a text of more than ${TEXT_MAX} characters matches nothing`)
      return null
    }
    compiled ??= patternLibrary().compile(pattern)
    const matcher = compiled.matcher(text)
    if (!matcher.matches()) return null
    return Array.from({ length: compiled.groupCount() + 1 }, (_, group) => matcher.group(group) ?? '')
  }
}
