import { H5LogError } from '../base/errors.ts';
import type { TypedArray } from '../dtype/model.ts';
import { attributeValue, type CdlType, cdlError, isCdlType, plainName, type Token, tokensOf } from './cdl-tokens.ts';

export interface CdlAttribute {
  readonly name: string;
  readonly value: string | readonly string[] | TypedArray;
}

interface CdlDimension {
  /** Includes the path of its group. */
  readonly name: string;
  readonly size: number;
  readonly unlimited: boolean;
}

export interface CdlVariable {
  /** Includes the path of its group. */
  readonly name: string;
  readonly type: CdlType;
  /** Indexes into the header's dimensions. */
  readonly dimensions: readonly number[];
  readonly attributes: readonly CdlAttribute[];
}

/** The parsed header of a netCDF file. Names include the path of their group. */
export interface CdlHeader {
  readonly name: string;
  readonly dimensions: readonly CdlDimension[];
  readonly variables: readonly CdlVariable[];
  /** Attributes of the root group. */
  readonly attributes: readonly CdlAttribute[];
  /** The other groups and their attributes. */
  readonly groups: readonly { readonly name: string; readonly attributes: readonly CdlAttribute[] }[];
}

/**
 * Parses the output of `ncdump -h`. A `data` section is skipped; user-defined types are UNSUPPORTED.
 *
 * @example parseCdl('netcdf a { dimensions: x = 3 ; variables: float t(x) ; t:units = "K" ; }').variables[0].name // t
 */
export function parseCdl(text: string): CdlHeader {
  return new CdlParser(tokensOf(text)).header();
}

interface GrowingVariable extends CdlVariable {
  readonly attributes: CdlAttribute[];
}

const SECTIONS = ['types', 'dimensions', 'variables', 'data'];

class CdlParser {
  readonly #tokens: readonly Token[];
  #at = 0;
  readonly #dimensions: CdlDimension[] = [];
  readonly #variables: GrowingVariable[] = [];
  readonly #byName = new Map<string, GrowingVariable>();
  readonly #groups: { name: string; attributes: CdlAttribute[] }[] = [];

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  header(): CdlHeader {
    const word = this.#next('netcdf');
    if (word.text !== 'netcdf') throw cdlError(word.line, `the header begins with netcdf, not with ${word.text}`);
    // ncdump does not escape blanks and punctuation in the name of the file.
    const parts: string[] = [];
    while (!this.#is('{')) parts.push(plainName(this.#next('the name of the file').text));
    const attributes: CdlAttribute[] = [];
    this.#group('', [], attributes);
    const rest = this.#tokens[this.#at];
    if (rest) throw cdlError(rest.line, `${rest.text} after the end of the header`);
    return {
      name: parts.join(' '),
      dimensions: this.#dimensions,
      variables: this.#variables,
      attributes,
      groups: this.#groups,
    };
  }

  /** Parses a group from its opening to its closing brace. `above` are the dimensions of the enclosing groups, innermost last. */
  #group(path: string, above: readonly number[], attributes: CdlAttribute[]): void {
    this.#mark('{');
    const scope = [...above];
    let section = '';
    while (!this.#take('}')) {
      const token = this.#next('}');
      if (token.kind === 'word' && this.#is(':') && token.text === 'group') {
        this.#at++;
        const name = `${path}${plainName(this.#next('the name of a group').text)}`;
        const own: CdlAttribute[] = [];
        this.#groups.push({ name, attributes: own });
        this.#group(`${name}/`, scope, own);
      } else if (token.kind === 'word' && this.#is(':') && SECTIONS.includes(token.text)) {
        this.#at++;
        section = token.text;
        if (section === 'types')
          throw new H5LogError(
            'UNSUPPORTED',
            `line ${token.line} of the CDL header: user-defined types are not supported`,
          );
      } else if (section === 'data') {
        if (token.text !== ';') this.#upTo(';');
      } else {
        this.#at--;
        if (this.#isAttribute()) this.#attribute(path, attributes);
        else if (section === 'dimensions') this.#dimension(path, scope);
        else if (section === 'variables') this.#declaration(path, scope);
        else throw cdlError(token.line, `${token.text} is not expected here`);
      }
    }
  }

  /** Whether an attribute follows: `:a`, `v:a`, `type :a` or `type v:a`, and an equals sign. */
  #isAttribute(): boolean {
    for (let i = 0; i < 3; i++) {
      const token = this.#tokens[this.#at + i];
      if (token?.kind === 'mark') return token.text === ':';
    }
    return false;
  }

  #attribute(path: string, ofGroup: CdlAttribute[]): void {
    const words: Token[] = [];
    while (!this.#take(':')) words.push(this.#word('the name of a variable'));
    const name = plainName(this.#word('the name of an attribute').text);
    this.#mark('=');
    const [first] = words;
    // A variable may have the name of a type.
    const isTyped =
      words.length > 1 || (first !== undefined && isCdlType(first.text) && !this.#byName.has(path + first.text));
    if (isTyped && !isCdlType((first as Token).text)) throw unknownType(first as Token);
    const declared = isTyped ? ((first as Token).text as CdlType) : undefined;
    const owner = words[isTyped ? 1 : 0];
    const variable = owner && this.#byName.get(path + plainName(owner.text));
    if (owner && !variable) throw cdlError(owner.line, `there is no variable ${plainName(owner.text)}`);
    const constants: Token[] = [];
    while (!this.#is(';')) {
      constants.push(this.#next('a value'));
      if (!this.#take(',')) break;
    }
    this.#mark(';');
    const value = constants.length === 0 ? '' : attributeValue(constants, declared);
    (variable?.attributes ?? ofGroup).push({ name, value });
  }

  #dimension(path: string, scope: number[]): void {
    do {
      const name = this.#word('the name of a dimension');
      this.#mark('=');
      const size = this.#word('a size');
      const unlimited = size.text.toLowerCase() === 'unlimited';
      if (!unlimited && !/^\d+$/.test(size.text))
        throw cdlError(size.line, `${size.text} is not the size of a dimension`);
      const index = this.#dimensions.length;
      this.#dimensions.push({ name: path + plainName(name.text), size: unlimited ? 0 : Number(size.text), unlimited });
      scope.push(index);
    } while (this.#take(','));
    this.#mark(';');
    const note = this.#tokens[this.#at];
    if (note?.kind !== 'currently') return;
    this.#at++;
    const last = this.#dimensions.length - 1;
    this.#dimensions[last] = { ...(this.#dimensions[last] as CdlDimension), size: Number(note.text) };
  }

  #declaration(path: string, scope: readonly number[]): void {
    const type = this.#word('a type');
    if (!isCdlType(type.text)) throw unknownType(type);
    do {
      const token = this.#word('the name of a variable');
      const name = path + plainName(token.text);
      if (this.#byName.has(name)) throw cdlError(token.line, `a second variable ${name}`);
      const dimensions: number[] = [];
      if (this.#take('(')) {
        do dimensions.push(this.#find(this.#word('a dimension'), scope));
        while (this.#take(','));
        this.#mark(')');
      }
      const variable = { name, type: type.text, dimensions, attributes: [] };
      this.#variables.push(variable);
      this.#byName.set(name, variable);
    } while (this.#take(','));
    this.#mark(';');
  }

  /** The innermost dimension of that name; ncdump prints outer dimensions that it hides with their path. */
  #find(token: Token, scope: readonly number[]): number {
    const name = plainName(token.text);
    const found = scope.findLast((index) => {
      const known = (this.#dimensions[index] as CdlDimension).name;
      return name.startsWith('/') ? `/${known}` === name : known.slice(known.lastIndexOf('/') + 1) === name;
    });
    if (found === undefined) throw cdlError(token.line, `there is no dimension ${name}`);
    return found;
  }

  // ---------------------------------------------------------------- tokens

  #next(wanted: string): Token {
    const token = this.#tokens[this.#at];
    if (!token) throw cdlError(this.#tokens.at(-1)?.line ?? 1, `the header ends where ${wanted} should be`);
    this.#at++;
    return token;
  }

  #word(wanted: string): Token {
    const token = this.#next(wanted);
    if (token.kind !== 'word') throw cdlError(token.line, `${JSON.stringify(token.text)} where ${wanted} should be`);
    return token;
  }

  #is(mark: string): boolean {
    const token = this.#tokens[this.#at];
    return token?.kind === 'mark' && token.text === mark;
  }

  #take(mark: string): boolean {
    const found = this.#is(mark);
    if (found) this.#at++;
    return found;
  }

  #mark(mark: string): void {
    const token = this.#next(mark);
    if (token.kind !== 'mark' || token.text !== mark)
      throw cdlError(token.line, `${JSON.stringify(token.text)} where ${mark} should be`);
  }

  #upTo(mark: string): void {
    while (!this.#take(mark)) this.#next(mark);
  }
}

function unknownType({ text, line }: Token): H5LogError {
  return new H5LogError('UNSUPPORTED', `line ${line} of the CDL header: ${text} is not a type of CDL itself`);
}
