/**
 * Regular expressions of sequences. They are written for Java; what JavaScript would silently read in another way is
 * refused. They run over text that clients may have written: a client must not be able to keep the thread busy.
 */

interface ReadPattern {
  /** Source for `matcherOf`; undefined when it is refused. */
  readonly pattern?: string
  readonly why: string
  readonly remedy: string
}

/** Java's own; with the flag `u` most others are errors of syntax. */
const JAVA_ONLY: readonly (readonly [RegExp, string, string])[] = [
  [/^\(\?[a-zA-Z]+\)/, 'has flags for all of it', 'write (?i:…) around it'],
  [/\\Q|\\E/, 'quotes with \\Q', 'escape each character with \\'],
  [/\\[AzZG]/, 'has an anchor of Java', 'leave it out: all of the text is matched'],
  [/\(\?>|[*+?}]\+/, 'is possessive or atomic', 'leave that out'],
  [
    /\\p\{(?:Alpha|Upper|Lower|Digit|Alnum|Punct|Space|XDigit|Blank|Cntrl|Graph|Print|ASCII)\}/,
    'has a class of POSIX',
    'write [A-Za-z] or the like',
  ],
  [/&&/, 'has an intersection of classes', 'write the class out'],
]
/** What JavaScript takes behind a backslash with the flag `u`, outside classes. */
const PUNCTUATION_KEPT = '^$\\.*+?()[]{}|/-'

export function patternOf(text: string): ReadPattern {
  const java = JAVA_ONLY.find(([found]) => found.test(text))
  if (java !== undefined) return { why: java[1], remedy: java[2] }
  const pattern = withoutIdleEscapes(text)
  try {
    new RegExp(`^(?:${pattern})$`, 'u')
  } catch (error) {
    const said = (error as Error).message.replace(/^.*: /s, '')
    return { why: `is no regular expression: ${said}`, remedy: 'correct it' }
  }
  if (repeatsRepetition(pattern)) {
    return { why: 'repeats a repetition, which may take forever', remedy: 'write (a+)* as a*' }
  }
  return { pattern, why: '', remedy: '' }
}

/** Java takes a backslash in front of any punctuation; JavaScript only where it means something. */
function withoutIdleEscapes(text: string): string {
  let inClass = false
  let pattern = ''
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (character !== '\\') {
      if (character === '[') inClass = true
      else if (character === ']') inClass = false
      pattern += character
      continue
    }
    const next = text[++at] ?? ''
    const isKept =
      /[\p{L}\p{N}]/u.test(next) || next === '' || (PUNCTUATION_KEPT.includes(next) && (inClass || next !== '-'))
    pattern += isKept ? `\\${next}` : next
  }
  return pattern
}

/** A group without end in a group without end: their ways to share a text are 2 to its length. */
function repeatsRepetition(pattern: string): boolean {
  const groups: boolean[] = [false]
  let inClass = false
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!
    if (character === '\\') at++
    else if (inClass) inClass = character !== ']'
    else if (character === '[') inClass = true
    else if (character === '(') groups.push(false)
    else if (character === ')') {
      const repeats = groups.pop() === true
      const isRepeated = isEndless(pattern, at + 1)
      if (repeats && isRepeated) return true
      if (repeats || isRepeated) groups[groups.length - 1] = true
    } else if (isEndless(pattern, at)) groups[groups.length - 1] = true
  }
  return false
}

function isEndless(pattern: string, at: number): boolean {
  return /^(?:[*+]|\{\d+,\})/.test(pattern.slice(at, at + 20))
}

/** Of a text that is longer nothing is matched. */
const TEXT_MAX = 8192

/** Matches all of a text, as the reference platform does. */
export function matcherOf(
  pattern: string,
  complain: (cause: string) => void,
): (text: string) => RegExpExecArray | null {
  const whole = new RegExp(`^(?:${pattern})$`, 'u')
  return text => {
    if (text.length <= TEXT_MAX) return whole.exec(text)
    complain(`a text of more than ${TEXT_MAX} characters matches nothing`)
    return null
  }
}
