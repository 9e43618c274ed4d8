/**
 * Regular expressions that match in linear time (RE2, close to Java's syntax), for text that clients choose. A
 * backtracking engine takes seconds for `.*a.*a.*b` and 2 KiB. The module re2js is loaded with the first pattern,
 * because it takes 5 ms and 8 MB, and most threads need none.
 */
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

interface Matcher {
  /** True if the whole text matches. */
  matches(): boolean
  /** True if a part of the text matches. */
  find(): boolean
  /** True if the text begins with a match. */
  lookingAt(): boolean
  group(group: number): string | null
  /** The text with each match replaced. */
  replaceAll(replacement: string): string
  /** The text with its first match replaced. */
  replaceFirst(replacement: string): string
}

export interface Pattern {
  /** True if a part of the text matches; ten times faster than a matcher, because it keeps no groups. */
  test(text: string): boolean
  matcher(text: string): Matcher
  groupCount(): number
}

interface PatternEngine {
  readonly RE2JS: { compile(pattern: string): Pattern }
}

/** Throws where the text is no regular expression. */
export function compilePattern(text: string): Pattern {
  return (require('re2js') as PatternEngine).RE2JS.compile(text)
}

/** Tells whether the text is a regular expression. */
export function isPattern(text: string): boolean {
  try {
    return compilePattern(text) !== undefined
  } catch {
    return false
  }
}
