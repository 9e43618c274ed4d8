/** Errors of templates: in their text, and while they run. Neither has any text of a message. */

/** The text is no template that can be run. */
export class TemplateSyntaxError extends Error {
  override readonly name = 'TemplateSyntaxError'
  /** Character where the error stands. */
  readonly at: number
  readonly hint: string

  constructor(message: string, at: number, hint = 'correct it') {
    super(message)
    this.at = at
    this.hint = hint
  }
}

/** The template cannot go on with the values of this message; `<#attempt>` recovers from it. */
export class TemplateFailure extends Error {
  override readonly name = 'TemplateFailure'
  /** A value is missing: what `!` and `??` look for in parentheses. */
  readonly isMissing: boolean

  constructor(message: string, isMissing = false) {
    super(message)
    this.isMissing = isMissing
  }
}
