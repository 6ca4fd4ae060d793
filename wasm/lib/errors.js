// What can go wrong, by kind.

/** The root of all exceptions of this package. */
export class CognateError extends Error {
  get name() {
    return this.constructor.name;
  }
}

/** A model cannot be used: it cannot be fetched, is damaged, cut short, or no model at all. */
export class ModelError extends CognateError {}

/** A method does not exist, or cannot do with this model what was asked. */
export class MethodError extends CognateError {}

/** A setting has a value that it cannot have. */
export class SettingError extends CognateError {}

/** A text cannot be scored, and that was to be an error. */
export class TextError extends CognateError {
  constructor(message, argument, index) {
    super(message);
    /** The name of the argument that the text was passed in. */
    this.argument = argument;
    /** The text's place in it, or null where one text was passed. */
    this.index = index;
  }
}

/** A score is no finite number: the model's vectors are not sound. */
export class ScoreError extends CognateError {}

/** The exception of a problem as the module tells it. */
export function raised({ kind, message, argument, index }) {
  switch (kind) {
    case "model":
      return new ModelError(message);
    case "method":
      return new MethodError(message);
    case "setting":
      return new SettingError(message);
    case "text":
      return new TextError(message, argument, index ?? null);
    case "score":
      return new ScoreError(message);
    default:
      return new CognateError(message);
  }
}
